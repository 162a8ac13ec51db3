/**
 * The lifecycle of handlers of every kind: built in a scope, once per instance, and finalized after the running
 * requests.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Result, Scope, Stream } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { x: Tensor.INT32(1) },
  outputs: { x: Tensor.INT32(1) },
  maxBatchSize: 4,
}) {}

/** Recorded events, and the gate that handlers wait for. */
interface Life {
  readonly events: Array<string>
  readonly gate: PromiseWithResolvers<void>
}

/** A handler that is built, waits for the gate, cannot be interrupted meanwhile, and is finalized. */
const living = <H>(
  { events, gate }: Life,
  handler: (wait: Effect.Effect<void>) => H,
): Effect.Effect<H, never, Scope.Scope> => {
  const wait = Effect.uninterruptible(
    Effect.promise(() => gate.promise).pipe(Effect.andThen(Effect.sync(() => events.push("end")))),
  )
  return Effect.acquireRelease(
    Effect.sync(() => {
      events.push("build")
      return handler(wait)
    }),
    () => Effect.sync(() => events.push("finalize")),
  )
}

const instances = { instances: 2 }

const modes: { readonly [mode: string]: (life: Life) => Layer.Layer<Echo> } = {
  each: (life) =>
    Model.each(
      Echo,
      living(life, (wait) => (sample: Model.Sample<Fields>) => Effect.as(wait, sample)),
      instances,
    ),
  batch: (life) =>
    Model.batch(
      Echo,
      living(life, (wait) => (batch: Model.Batched<Fields>) => Effect.as(wait, batch)),
      instances,
    ),
  requests: (life) =>
    Model.requests(
      Echo,
      living(
        life,
        (wait) => (requests: ReadonlyArray<Model.ModelRequest<Fields>>) =>
          Effect.as(
            wait,
            requests.map(({ inputs }) => Result.succeed(inputs)),
          ),
      ),
      instances,
    ),
  stream: (life) =>
    Model.stream(
      Echo,
      living(life, (wait) => (sample: Model.Sample<Fields>) => Stream.fromEffect(Effect.as(wait, sample))),
      instances,
    ),
}

type Fields = (typeof Echo)["definition"]["inputs"]

it.effect.each(Object.entries(modes))(
  "%s: once per instance, for any number of requests, and finalized after running batches",
  ([, mode]) =>
    Effect.gen(function* () {
      const life: Life = { events: [], gate: Promise.withResolvers() }
      const scope = yield* Scope.make()
      const model = yield* Scope.provide(Testing.model(mode(life)), scope)
      expect(life.events).toEqual(["build", "build"])
      life.gate.resolve()
      yield* Effect.forEach(
        [1, 2, 3, 4, 5, 6, 7, 8],
        () => model.infer({ x: Tensor.make("INT32", [1], Int32Array.of(1)) }),
        {
          concurrency: "unbounded",
        },
      )
      expect(life.events.filter((event) => event === "build")).toHaveLength(2)
      expect(life.events).not.toContain("finalize")
      yield* Scope.close(scope, Exit.void)
      expect(life.events.slice(-2)).toEqual(["finalize", "finalize"])
    }),
)

it.effect.each(Object.entries(modes))("%s: unloaded while it runs, it is finalized once that has ended", ([, mode]) =>
  Effect.gen(function* () {
    const life: Life = { events: [], gate: Promise.withResolvers() }
    const scope = yield* Scope.make()
    const model = yield* Scope.provide(Testing.model(mode(life)), scope)
    const pending = yield* Effect.forkChild(
      Effect.exit(model.infer({ x: Tensor.make("INT32", [1], Int32Array.of(1)) })),
    )
    yield* Testing.advance(0)
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* Testing.advance(0)
    expect([life.events, model.model.life.isReady()]).toEqual([["build", "build"], false])
    life.gate.resolve()
    yield* Fiber.join(closing)
    yield* Fiber.join(pending)
    expect(life.events).toEqual(["build", "build", "end", "finalize", "finalize"])
  }),
)

it.effect("a handler has no span of its model's load, while what builds the handler has", () =>
  Effect.gen(function* () {
    const parents: Array<string> = []
    const note = Effect.map(Effect.option(Effect.currentParentSpan), (span) =>
      parents.push(
        Option.match(span, { onNone: () => "none", onSome: (span) => (span._tag === "Span" ? span.name : "") }),
      ),
    )
    const live = Model.each(
      Echo,
      Effect.as(note, (sample: Model.Sample<Fields>) => Effect.as(note, sample)),
    )
    const context = yield* Layer.build(live).pipe(Effect.withSpan("load"))
    const { infer } = yield* Effect.provideContext(Echo, context)
    yield* infer({ x: Tensor.make("INT32", [1], Int32Array.of(1)) })
    expect(parents).toEqual(["Provide.build", "none"])
  }),
)
