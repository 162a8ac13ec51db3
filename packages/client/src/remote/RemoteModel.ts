/**
 * A model that runs on a server, as the RunningModel that any other is: so its typed face, its front ends and its tests
 * cannot tell. It keeps the deadlines, counts the statistics and checks the replies; a channel carries the requests.
 */
import { constVoid } from "effect/Function"
import { Clock, Effect, Latch, Result } from "effect"
import * as Defaults from "@nereid/core/internal/model/Defaults"
import type { Definition } from "@nereid/core/internal/model/Definition"
import { DeadlineExceeded, type InferenceError, QueueFull, Unavailable } from "@nereid/core/Errors"
import type { Fields } from "@nereid/core/internal/model/Field"
import {
  type Cancel,
  errorPrefix,
  noParameters,
  type Request,
  type Response,
} from "@nereid/core/internal/request/Request"
import * as ParameterFields from "@nereid/core/internal/model/ParameterFields"
import type { CallableModel } from "@nereid/core/internal/running/CallableModel"
import * as ModelLife from "@nereid/core/internal/running/ModelLife"
import { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type FailureReason, ModelStatistics } from "@nereid/core/internal/metrics/ModelStatistics"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { Channel } from "../channel/Channel.ts"
import type { Settings } from "../channel/ClientOptions.ts"
import { receive } from "./Emission.ts"
import * as Endpoint from "../channel/Endpoint.ts"
import * as OutputCheck from "./OutputCheck.ts"

/** Longer timers fire at once; no call waits for 24 days. */
const longestTimer = 2 ** 31 - 1

/** The model, until its scope closes; calls that still wait then fail with Unavailable. */
export const make = Effect.fnUntraced(function* <I extends Fields, O extends Fields>(
  definition: Definition<I, O>,
  channel: Channel,
  settings: Settings,
) {
  const { name, version, signature, maxBatchSize, batching } = definition
  const { endpoint, maxInFlight, timeout } = settings
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const statistics = new ModelStatistics()
  const complete = completer(definition)
  const known = (error: InferenceError) => definition.errors?.known(error) ?? error
  /** Ends a waiting call with an error, and takes it back from the server. */
  const waiting = new Set<(error: InferenceError) => void>()
  let closed = false
  const idle = Latch.makeUnsafe(true)

  const unavailable = () => new Unavailable({ message: `the client of ${Endpoint.address(endpoint)} is closed` })

  const nanos = () => Number(clock.monotonicTimeNanosUnsafe())

  const succeeded = (rows: number, startedAt: number, answeredAt: number) => {
    const endedAt = nanos()
    const compute = { input: 0, infer: answeredAt - startedAt, output: endedAt - answeredAt }
    statistics.executed(rows, compute, clock.currentTimeMillisUnsafe())
    statistics.succeeded(endedAt - startedAt, 0, compute)
  }

  const submit: CallableModel["submit"] = (request, reply) => {
    const refuse = (reason: FailureReason, error: InferenceError): Cancel => {
      statistics.failed(reason, 0)
      reply(Result.fail(error))
      return constVoid
    }
    if (closed) return refuse("OTHER", unavailable())
    if (waiting.size >= maxInFlight) return refuse("REJECTED", tooManyInFlight(request, maxInFlight))
    const now = clock.currentTimeMillisUnsafe()
    const remaining = request.deadline === undefined ? timeout : request.deadline - now
    if (remaining !== undefined && remaining <= 0) return refuse("REJECTED", expired(request))

    const startedAt = nanos()
    let open = true
    let timer: NodeJS.Timeout | undefined
    let takeBack: Cancel = constVoid
    /** False where the call has ended before. */
    const finish = (reason: FailureReason | undefined): boolean => {
      if (!open) return false
      open = false
      clearTimeout(timer)
      waiting.delete(end)
      if (waiting.size === 0) idle.openUnsafe()
      if (reason !== undefined) statistics.failed(reason, nanos() - startedAt)
      return true
    }
    const end = (error: InferenceError) => {
      if (!finish(reasonOf(error))) return
      takeBack()
      reply(Result.fail(error))
    }
    waiting.add(end)
    idle.closeUnsafe()
    if (remaining !== undefined && remaining <= longestTimer) {
      timer = setTimeout(() => end(expired(request)), Math.ceil(remaining))
    }
    const wire = wireRequest(definition, settings.version, complete(request))
    const expected = { name, signature, rows: maxBatchSize > 0 ? request.rows : undefined }
    const answer = (answeredAt: number, outcome: Result.Result<Response, InferenceError>) => {
      if (!finish(Result.isSuccess(outcome) ? undefined : reasonOf(outcome.failure))) return
      if (Result.isSuccess(outcome)) succeeded(request.rows, startedAt, answeredAt)
      reply(outcome)
    }
    const { emit } = request
    if (emit === undefined) {
      takeBack = channel.infer(wire, remaining, (outcome) => {
        const answeredAt = nanos()
        answer(
          answeredAt,
          Result.flatMap(Result.mapError(outcome, known), (response) => OutputCheck.check(expected, response)),
        )
      })
    } else {
      takeBack = receive(channel, wire, remaining, definition, {
        emit,
        fork,
        check: (response) => OutputCheck.check(expected, response),
        end: (outcome) =>
          answer(
            nanos(),
            Result.map(Result.mapError(outcome, known), () => last),
          ),
      })
    }
    return () => {
      if (finish("CANCELED")) takeBack()
    }
  }

  yield* Effect.addFinalizer(() =>
    Effect.promise(() => {
      closed = true
      for (const end of waiting) end(unavailable())
      return channel.close()
    }),
  )

  return new RunningModel({
    description: {
      name,
      version: settings.version === "" ? version : settings.version,
      platform: "nereid_client",
      signature,
      maxBatchSize,
      batching,
      statistics,
      flat: undefined,
      responseCache: false,
      modelFile: undefined,
      warmUp: undefined,
    },
    calls: {
      // It may be: a request for one response is a unary call, which a server refuses for a decoupled model.
      decoupled: false,
      emits: true,
      keepsInputs: true,
      timeout,
      cycles: undefined,
      submit,
    },
    life: ModelLife.make({ isReady: () => !closed, pending: () => waiting.size, drained: idle.await }),
  })
})

/** Says that there are no more. */
const last: Response = { outputs: [], parameters: noParameters }

const wireRequest = (definition: Definition<Fields, Fields>, version: string, request: Request): WireRequest => ({
  modelName: definition.name,
  modelVersion: version,
  id: request.id,
  parameters: request.parameters,
  inputs: definition.signature.inputs.flatMap(({ name }, index) => {
    const tensor = request.inputs[index]
    return tensor === undefined ? [] : [{ name, datatype: tensor.datatype, shape: tensor.shape, bytes: tensor.bytes }]
  }),
  outputs: [],
  ...(request.trace?.span !== undefined && { parent: request.trace.span }),
})

/**
 * With what the request has left out and the model has a default for. The server may be one that knows no defaults, or others:
 * what counts is what the caller's declaration says.
 */
const completer = ({ signature, maxBatchSize, parameters }: Definition<Fields, Fields>) => {
  const fill = Defaults.filler(signature, maxBatchSize > 0)
  const told = parameters && ParameterFields.make(parameters)
  return (request: Request): Request => {
    const filled = fill === undefined ? request : fill(request)
    return told === undefined ? filled : { ...filled, parameters: told.complete(filled.parameters) }
  }
}

/** In the words of the local scheduler. */
const expired = (request: Request) => new DeadlineExceeded({ message: `${errorPrefix(request)}Deadline Exceeded` })

const tooManyInFlight = (request: Request, most: number) =>
  new QueueFull({ message: `${errorPrefix(request)}${most} calls are in flight, which is this client's maxInFlight` })

const reasonOf = (error: InferenceError): FailureReason => {
  switch (error._tag) {
    case "ExecutionFailed":
    case "Unrecoverable":
    case "DeclaredFailure":
      return "BACKEND"
    case "QueueFull":
    case "QueueTimeout":
    case "DeadlineExceeded":
      return "REJECTED"
    case "Cancelled":
      return "CANCELED"
    default:
      return "OTHER"
  }
}
