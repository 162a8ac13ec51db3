/**
 * A model on a server as a RunningModel, so that its typed calls, its front ends and its tests work as with a local
 * model. It limits the calls in flight, sets their deadlines and counts statistics; a channel carries the requests.
 */
import { constVoid } from "effect/Function"
import { Clock, Effect, Result } from "effect"
import * as Defaults from "@nereid/core/internal/model/Defaults"
import type { Definition } from "@nereid/core/internal/model/Definition"
import { type InferenceError, QueueFull, Unavailable } from "@nereid/core/Errors"
import type { Fields } from "@nereid/core/internal/model/Field"
import { type Cancel, errorPrefix, type Reply, type Request } from "@nereid/core/internal/request/Request"
import * as ParameterFields from "@nereid/core/internal/model/ParameterFields"
import * as ModelDescription from "@nereid/core/internal/running/ModelDescription"
import * as ModelLife from "@nereid/core/internal/running/ModelLife"
import { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type Release, OpenRequests } from "@nereid/core/internal/running/OpenRequests"
import { type FailureReason, ModelStatistics } from "@nereid/core/internal/metrics/ModelStatistics"
import type { Channel } from "../channel/Channel.ts"
import { expired, RemoteCall, type RemoteCallOptions } from "./RemoteCall.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

/** Settings of a remote model, whatever its channel. */
export interface RemoteSettings {
  /** Timeout of calls that set none, in milliseconds; undefined for no timeout. */
  readonly timeout: number | undefined
  /** Version of the model; empty for the server's choice. */
  readonly version: string
  readonly maxInFlight: number
  /** Name of the other end of the channel in messages: an address. */
  readonly target: string
}

/** The model, until its scope closes; calls in flight then fail with Unavailable. */
export const make = Effect.fnUntraced(function* <I extends Fields, O extends Fields>(
  definition: Definition<I, O>,
  channel: Channel,
  settings: RemoteSettings,
) {
  const clock = yield* Clock.Clock
  const statistics = new ModelStatistics()
  const calls = new RemoteCalls(settings, {
    definition,
    channel,
    version: settings.version,
    complete: completer(definition),
    statistics,
    nanos: () => Number(clock.monotonicTimeNanosUnsafe()),
    currentTimeMillis: () => clock.currentTimeMillisUnsafe(),
    monotonicMillis: () => MonotonicTime.millis(clock),
    fork: Effect.runForkWith(yield* Effect.context<never>()),
  })
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => {
      calls.close()
      return channel.close()
    }),
  )
  const version = settings.version === "" ? definition.version : settings.version
  return new RunningModel({
    description: ModelDescription.make({ ...definition, version }, { platform: "nereid_client", statistics }),
    calls: {
      // It may be: a request for one response is a unary call, which a server refuses for a decoupled model.
      decoupled: false,
      emits: true,
      keepsInputs: true,
      timeout: settings.timeout,
      cycles: undefined,
      submit: (request, reply) => calls.submit(request, reply),
    },
    life: ModelLife.make({
      isReady: () => !calls.isClosed,
      pending: () => calls.size,
      drained: calls.drained,
      keep: () => calls.keep(),
    }),
  })
})

/** The calls in flight. */
class RemoteCalls {
  readonly #settings: RemoteSettings
  readonly #options: RemoteCallOptions
  readonly #inFlight = new Set<RemoteCall>()
  readonly #openRequests = new OpenRequests()
  #isClosed = false

  constructor(settings: RemoteSettings, options: Omit<RemoteCallOptions, "onEnd">) {
    this.#settings = settings
    this.#options = { ...options, onEnd: (call) => this.#delete(call) }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get size(): number {
    return this.#inFlight.size
  }

  /** Completes when no call is in flight. */
  get drained(): Effect.Effect<void> {
    return this.#openRequests.drained
  }

  keep(): Release {
    return this.#openRequests.keep()
  }

  submit(request: Request, reply: Reply): Cancel {
    const { maxInFlight, timeout } = this.#settings
    if (this.#isClosed) return this.#refuse(reply, "OTHER", this.#unavailable())
    if (this.size >= maxInFlight) return this.#refuse(reply, "REJECTED", tooManyInFlight(request, maxInFlight))
    const { deadline } = request
    const remaining = deadline === undefined ? timeout : deadline - this.#options.monotonicMillis()
    if (remaining !== undefined && remaining <= 0) return this.#refuse(reply, "REJECTED", expired(request))
    const call = new RemoteCall(this.#options, request, reply)
    this.#inFlight.add(call)
    this.#openRequests.begin()
    call.send(remaining)
    return () => call.cancel()
  }

  /** Fails all calls in flight, and all later ones. */
  close(): void {
    this.#isClosed = true
    for (const call of this.#inFlight) call.fail(this.#unavailable())
  }

  #refuse(reply: Reply, reason: FailureReason, error: InferenceError): Cancel {
    this.#options.statistics.failed(reason, 0)
    reply(Result.fail(error))
    return constVoid
  }

  #delete(call: RemoteCall): void {
    this.#inFlight.delete(call)
    this.#openRequests.end()
  }

  #unavailable(): Unavailable {
    return new Unavailable({ message: `the client of ${this.#settings.target} is closed` })
  }
}

/**
 * Adds the model's defaults for inputs and parameters that a request leaves out. The caller's declaration decides: the
 * server may have other defaults, or no defaults.
 */
const completer = ({ signature, maxBatchSize, parameters }: Definition<Fields, Fields>) => {
  const fill = Defaults.filler(signature, maxBatchSize > 0)
  const fields = parameters && ParameterFields.make(parameters)
  return (request: Request): Request => {
    const filled = fill === undefined ? request : fill(request)
    return fields === undefined ? filled : { ...filled, parameters: fields.complete(filled.parameters) }
  }
}

const tooManyInFlight = (request: Request, limit: number) =>
  new QueueFull({ message: `${errorPrefix(request)}${limit} calls are in flight, the maxInFlight of this client` })
