/**
 * A model under test by promises, with a clock that the test controls, for any test runner. TestModel.ts is the same in
 * Effect.
 */
import { type Context, type Duration, Effect, Exit, Layer, Scope, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import type { Batched, Input, InputBatch, Sample } from "../model/Definition.ts"
import type { Answer, CallArguments, Inference } from "../call/Inference.ts"
import * as PromiseSession from "../call/PromiseSession.ts"
import type { SessionOptions, Sessions } from "../call/Session.ts"
import type { Fields } from "../model/Field.ts"
import type { Declared } from "../model/Declared.ts"
import type { ChunkOptions } from "../call/ChunkedCall.ts"
import * as PromiseCall from "../call/PromiseCall.ts"
import type { AnyModel, Execution } from "./Journal.ts"
import * as TestModel from "./TestModel.ts"
import { advance } from "./TestTime.ts"
import type { GenerateDocument, InferDocument } from "./WireCalls.ts"

/**
 * A model under test: a Client.PromiseClient that calls it over the wire, and its executions. Calls reject with the
 * tagged errors of `Errors`.
 */
export interface StartedModel<I extends Fields, O extends Fields, P extends Declared = undefined> extends TestedModel {
  readonly infer: (
    sample: Input<I>,
    ...options: CallArguments<P, PromiseCall.PromiseCallOptions<P>>
  ) => Promise<Sample<O>>
  readonly inferBatch: (
    batch: InputBatch<I>,
    ...options: CallArguments<P, PromiseCall.PromiseCallOptions<P> & ChunkOptions>
  ) => Promise<Batched<O>>
  readonly stream: (sample: Input<I>, ...options: CallArguments<P>) => AsyncIterable<Sample<O>>
  readonly streamBatch: (batch: InputBatch<I>, ...options: CallArguments<P>) => AsyncIterable<Batched<O>>
  /** The same calls with the parameters of their responses, as Inference has them. */
  readonly withParameters: {
    readonly infer: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCall.PromiseCallOptions<P>>
    ) => Promise<Answer<Sample<O>, P>>
    readonly inferBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P, PromiseCall.PromiseCallOptions<P> & ChunkOptions>
    ) => Promise<Answer<Batched<O>, P>>
    readonly stream: (sample: Input<I>, ...options: CallArguments<P>) => AsyncIterable<Answer<Sample<O>, P>>
    readonly streamBatch: (batch: InputBatch<I>, ...options: CallArguments<P>) => AsyncIterable<Answer<Batched<O>, P>>
  }
}

/** A model with sequences under test: its sessions, and its executions. */
export interface StartedSessions<
  I extends Fields,
  O extends Fields,
  P extends Declared = undefined,
> extends TestedModel {
  /** Opens a session, whose calls are promises. */
  readonly session: (options?: SessionOptions) => PromiseSession.PromiseSession<I, O, P>
}

/** The executions, the clock and the calls over the wire of a model under test. */
interface TestedModel extends AsyncDisposable {
  /** This and the next two as in WireCalls. */
  readonly inferJson: (document: string | object) => Promise<InferDocument>
  readonly inferProtobuf: (message: Uint8Array) => Promise<Uint8Array>
  readonly generate: (document: string | object) => AsyncIterable<GenerateDocument>
  /** The batches that its instances were given so far, the first one first; also those that failed. */
  readonly executions: ReadonlyArray<Execution>
  /**
   * Executions of another model that the layer provides, such as one that the model calls.
   * @throws TypeError if there is no model of this name
   */
  readonly executionsOf: (model: AnyModel) => ReadonlyArray<Execution>
  /** Advances the clock and runs the fibers that waited for it. With 0, runs all fibers that need no time. */
  readonly advance: (duration: Duration.Input) => Promise<void>
  /** Unloads the model. */
  readonly close: () => Promise<void>
}

/** The model of which this is the class. */
export type StartedModelOf<Self> = Self extends { readonly Service: Inference<infer I, infer O, infer P> }
  ? StartedModel<I, O, P>
  : Self extends { readonly Service: Sessions<infer I, infer O, infer P> }
    ? StartedSessions<I, O, P>
    : never

/**
 * Starts the model that a layer provides; `service` selects one if the layer provides several. Rejects with the error
 * of a layer that cannot be built.
 *
 * ```ts
 * await using model = await Testing.start(AddSubLive)
 * const answers = Promise.all(samples.map((sample) => model.infer(sample)))
 * await model.advance("5 millis")
 * expect(model.executions).toEqual([{ rows: 3, requests: 3 }])
 * ```
 *
 * `advance` affects only waits on Effect's clock: queues, deadlines, `Effect.sleep`. Timers of Node.js are unaffected.
 */
export const start = async <
  Provides,
  E,
  Self extends Provides = Provides,
  S extends TestModel.Callable = TestModel.ServiceOf<Self>,
>(
  layer: Layer.Layer<Provides, E>,
  service?: Context.Key<Self, S>,
): Promise<StartedModelOf<{ readonly Service: S }>> => {
  const scope = Scope.makeUnsafe()
  const clock = await Effect.runPromise(Layer.buildWithScope(TestClock.layer(), scope))
  const close = () => PromiseCall.run(Scope.close(scope, Exit.void), clock)
  try {
    const model = await PromiseCall.run(Scope.provide(TestModel.untyped(layer, service), scope), clock)
    // The service of a model's class has its types.
    return started(model, clock, close) as object as StartedModelOf<{ readonly Service: S }>
  } catch (error) {
    await close()
    throw error
  }
}

const started = (
  model: TestModel.TestModel<Fields, Fields> | TestModel.TestSessions<Fields, Fields>,
  clock: Context.Context<TestClock.TestClock>,
  close: () => Promise<void>,
) => ({
  ...("session" in model
    ? { session: (options?: SessionOptions) => PromiseSession.open(model, clock, options) }
    : calls(model, clock)),
  inferJson: (document: string | object) => PromiseCall.run(model.inferJson(document), clock),
  inferProtobuf: (message: Uint8Array) => PromiseCall.run(model.inferProtobuf(message), clock),
  generate: (document: string | object) => Stream.toAsyncIterableWith(model.generate(document), clock),
  get executions() {
    return Effect.runSync(model.executions)
  },
  executionsOf: (other: AnyModel) => Effect.runSync(model.executionsOf(other)),
  advance: (duration: Duration.Input) => PromiseCall.run(advance(duration), clock),
  close,
  [Symbol.asyncDispose]: close,
})

const calls = <I extends Fields, O extends Fields>(
  model: TestModel.TestModel<I, O>,
  clock: Context.Context<TestClock.TestClock>,
): Omit<StartedModel<I, O>, keyof TestedModel> => ({
  infer: (sample, options) => PromiseCall.run(model.infer(sample, options), clock, options),
  inferBatch: (batch, options) => PromiseCall.run(model.inferBatch(batch, options), clock, options),
  stream: (sample, options) => Stream.toAsyncIterableWith(model.stream(sample, options), clock),
  streamBatch: (batch, options) => Stream.toAsyncIterableWith(model.streamBatch(batch, options), clock),
  withParameters: {
    infer: (sample, options) => PromiseCall.run(model.withParameters.infer(sample, options), clock, options),
    inferBatch: (batch, options) => PromiseCall.run(model.withParameters.inferBatch(batch, options), clock, options),
    stream: (sample, options) => Stream.toAsyncIterableWith(model.withParameters.stream(sample, options), clock),
    streamBatch: (batch, options) =>
      Stream.toAsyncIterableWith(model.withParameters.streamBatch(batch, options), clock),
  },
})
