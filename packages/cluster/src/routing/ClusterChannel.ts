/**
 * The way from a caller to the owner of its sequence, as the channel of a remote model. The sharding of the cluster
 * finds the owner, and repeats a call until there is one.
 *
 * A call may be sent twice: its connection was lost, or its owner has left. Its name tells the owner.
 */
import { Cause, Clock, Effect, Exit, Latch, Option, Result, Stream } from "effect"
import type {
  AlreadyProcessingMessage,
  EntityNotAssignedToRunner,
  MailboxFull,
  PersistenceError,
} from "effect/cluster/ClusterError"
import { ExecutionFailed, type InferenceError, QueueFull, Unavailable } from "@nereid/core/Errors"
import * as InferMessage from "@nereid/core/internal/codec/protobuf/InferMessage"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { idOf } from "@nereid/core/internal/sequence/CorrelationId"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Channel } from "@nereid/client/internal/channel/Channel"
import * as Failure from "../protocol/Failure.ts"
import * as SequenceEntity from "../protocol/SequenceEntity.ts"
import * as SequencePart from "../protocol/SequencePart.ts"

/** Time between two attempts of a call whose owner has left. */
const retryInterval = "100 millis"

export const make = Effect.fnUntraced(function* (model: string) {
  const clock = yield* Clock.Clock
  const client = yield* SequenceEntity.make(model).client
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const sender = crypto.randomUUID()
  let calls = 0
  const prepare = (wire: WireRequest, timeoutMs: number | undefined) => {
    calls += 1
    const call = `${sender}/${calls}`
    const request = InferMessage.encode(wire, 0)
    const deadline = timeoutMs === undefined ? undefined : clock.currentTimeMillisUnsafe() + timeoutMs
    return {
      owner: client(String(SequencePart.partOf(idOf(wire.parameters)))),
      message: () => {
        const timeout = deadline === undefined ? undefined : Math.max(0, deadline - clock.currentTimeMillisUnsafe())
        return new SequenceEntity.Call({ call, request, ...(timeout !== undefined && { timeout }) })
      },
    }
  }
  const channel: Channel = {
    infer: (wire, timeoutMs, reply) => {
      const { owner, message } = prepare(wire, timeoutMs)
      const attempt: Effect.Effect<Uint8Array, Refusal> = Effect.suspend(() => owner.Infer(message())).pipe(
        Effect.catchCause((cause) =>
          isRepeatable(cause) ? Effect.delay(attempt, retryInterval) : Effect.failCause(cause),
        ),
      )
      const fiber = fork(attempt)
      let isCancelled = false
      fiber.addObserver((exit) => {
        if (isCancelled) return
        reply(Exit.isSuccess(exit) ? read(exit.value) : Result.fail(errorOf(model, exit.cause)))
      })
      return () => {
        isCancelled = true
        fiber.interruptUnsafe()
      }
    },
    stream: (wire, timeoutMs, receiver) => {
      const { owner, message } = prepare(wire, timeoutMs)
      const gate = Latch.makeUnsafe(true)
      const received = Stream.runForEach(
        Stream.suspend(() => owner.Stream(message())),
        (bytes) =>
          Effect.flatMap(Effect.fromResult(read(bytes)), (response) =>
            gate.whenOpen(Effect.sync(() => receiver.response(response))),
          ),
      )
      const fiber = fork(received)
      let isCancelled = false
      fiber.addObserver((exit) => {
        if (isCancelled) return
        receiver.end(Exit.isSuccess(exit) ? Result.succeed(undefined) : Result.fail(errorOf(model, exit.cause)))
      })
      return {
        cancel: () => {
          isCancelled = true
          fiber.interruptUnsafe()
        },
        flow: (isPaused) => (isPaused ? gate.closeUnsafe() : gate.openUnsafe()),
      }
    },
    close: () => Promise.resolve(),
  }
  return channel
})

type Refusal = Failure.Failure | MailboxFull | AlreadyProcessingMessage | PersistenceError | EntityNotAssignedToRunner

/**
 * Whether the call goes on with another attempt: its owner left while it had the call, or has not noticed yet that the
 * connection of the attempt before is lost.
 */
const isRepeatable = (cause: Cause.Cause<Refusal>): boolean => {
  if (Cause.hasInterruptsOnly(cause)) return true
  const error = Cause.findErrorOption(cause)
  return Option.isSome(error) && "_tag" in error.value && error.value._tag === "AlreadyProcessingMessage"
}

const read = (bytes: Uint8Array): Result.Result<WireResponse, InferenceError> =>
  Result.try({
    try: () => InferMessage.decode(bytes),
    catch: (error) => new ExecutionFailed({ message: `cannot decode the owner's response: ${errorMessage(error)}` }),
  })

const errorOf = (model: string, cause: Cause.Cause<Refusal | InferenceError>): InferenceError => {
  const found = Cause.findErrorOption(cause)
  if (Option.isNone(found)) {
    if (Cause.hasInterruptsOnly(cause)) {
      return new Unavailable({ message: `the runner that has the sequence of model '${model}' has left` })
    }
    return new ExecutionFailed({ message: `the call of model '${model}' failed: ${errorMessage(Cause.squash(cause))}` })
  }
  const error = found.value
  if (!("_tag" in error)) return Failure.toError(error)
  switch (error._tag) {
    case "MailboxFull":
      return new QueueFull({
        message: `too many calls wait for sequences of model '${model}' on their runner (entityMailboxCapacity or maxResidentEntities)`,
      })
    case "EntityNotAssignedToRunner":
      return new Unavailable({ message: `this runner is leaving the cluster of model '${model}'` })
    case "AlreadyProcessingMessage":
    case "PersistenceError":
      return new Unavailable({ message: `the cluster of model '${model}' cannot route a call: ${error.message}` })
    default:
      return error
  }
}
