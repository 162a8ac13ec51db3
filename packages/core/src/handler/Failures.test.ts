/**
 * Ways in which a handler may fail with an error that it has not announced: callers see the message, and the log the
 * rest.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Logger, References, Result, Stream } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Root extends Model.Service<Root>()("root", {
  inputs: { x: Tensor.scalar("FP32") },
  outputs: { y: Tensor.scalar("FP32") },
  maxBatchSize: 4,
}) {}

const fault = () => new RangeError("no root of -1")
const throwing = (): never => {
  throw fault()
}
const inEffect = Effect.gen(function* () {
  yield* Effect.void
  return throwing()
})

it.effect.each([
  ["each: a function that throws", Model.each(Root, throwing), true],
  ["each: a promise that is rejected", Model.each(Root, async () => throwing()), true],
  ["each: an effect that fails", Model.each(Root, () => Effect.fail(fault())), false],
  ["each: an effect that throws", Model.each(Root, () => inEffect), true],
  ["each: an effect that dies", Model.each(Root, () => Effect.die(fault())), true],
  ["batch: a function that throws", Model.batch(Root, throwing), true],
  ["batch: a promise that is rejected", Model.batch(Root, async () => throwing()), true],
  ["batch: an effect that fails", Model.batch(Root, () => Effect.fail(fault())), false],
  ["batch: an effect that throws", Model.batch(Root, () => inEffect), true],
  ["requests: a function that throws", Model.requests(Root, throwing), true],
  ["requests: a result", Model.requests(Root, (requests) => requests.map(() => Result.fail(fault()))), false],
  ["requests: an effect that throws", Model.requests(Root, () => inEffect), true],
  ["stream: a function that throws", Model.stream(Root, throwing), true],
  ["stream: a stream that fails", Model.stream(Root, () => Stream.fail(fault())), false],
  ["stream: a stream that throws", Model.stream(Root, () => Stream.fromEffect(inEffect)), true],
] as const)("%s", ([name, layer, isLogged]) =>
  Effect.gen(function* () {
    const logged: Array<string> = []
    const logger = Logger.make<unknown, void>(
      ({ message, cause }) => void logged.push(`${String(message)} ${String(cause)}`),
    )
    const root = yield* Testing.model(layer).pipe(Effect.provide(Logger.layer([logger])))
    const error = yield* Effect.flip(root.infer({ x: -1 })).pipe(
      Effect.provideService(References.MinimumLogLevel, "All"),
    )
    // A result is what the handler has to say, and the rest what became of it.
    const where = name === "requests: a result" ? "" : "Failed to process the request(s) for model 'root_0', message: "
    expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `${where}no root of -1` })
    expect(logged).toHaveLength(isLogged ? 1 : 0)
    if (isLogged) expect(logged[0]).toMatch(/The handler of model 'root' failed/)
  }),
)
