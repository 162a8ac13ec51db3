/**
 * The caller of a model, where it is the code of another model: its calls inherit the deadline, id, connection and
 * trace of the request that it handles, and call cycles are refused. Effects carry the caller in their fiber, promises
 * through HandledRequest's `run`. Front ends and clients handle no request of a model and have a caller only if they
 * are traced.
 */
import { constVoid } from "effect/Function"
import { type Clock, Context, Exit, type Fiber, Result } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { ParameterCodec } from "../model/ParameterFields.ts"
import { withChildTrace } from "./ChildCalls.ts"
import type { Request, Trace } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { CallableModel } from "../running/CallableModel.ts"

export interface CallerService {
  /** Of the model whose code calls; undefined for any other code. */
  readonly cycles: CallCycleDetector | undefined
  /** Id of the handled request; empty without a request, or with several. */
  readonly id: string
  /** Deadline of the handled request, as MonotonicTime; undefined for none. */
  readonly expiresAt: number | undefined
  /** Connection of the handled request; undefined without a request, or with several. */
  readonly connection?: object | undefined
  /** Trace of the handled request, if it has one. */
  readonly trace?: Trace | undefined
}

/** The caller that a fiber carries. */
export const Caller = Context.Reference<CallerService | undefined>("@nereid/core/Caller", {
  defaultValue: () => undefined,
})

/** The caller of calls from this fiber. */
export const callerOf = (fiber: Fiber.Fiber<unknown, unknown>): CallerService | undefined => {
  const caller = fiber.getRef(Caller)
  if (caller !== undefined) return caller
  const { span, tracer } = fiber.cache
  // Without a provided tracer, spans go nowhere.
  if (span?._tag !== "Span" || tracer === undefined) return undefined
  return { cycles: undefined, id: "", expiresAt: undefined, trace: { at: constVoid, span } }
}

/** The environment of the code of one instance, the same for all of its requests. */
export interface HandlerEnvironment {
  /** The name of the instance. */
  readonly instance: string
  readonly cycles: CallCycleDetector
  readonly clock: Clock.Clock
  readonly context: Context.Context<never>
  /** Codec of the response parameters that the model declares. */
  readonly responseParameters: ParameterCodec | undefined
}

/** The request with the caller's id if it has none, and with the earlier of the two deadlines. */
export const inheritCaller = (request: Request, caller: CallerService | undefined): Request => {
  if (caller === undefined) return request
  const { expiresAt = Infinity } = caller
  return {
    ...request,
    id: request.id === "" ? caller.id : request.id,
    connection: request.connection ?? caller.connection,
    deadline: expiresAt < (request.deadline ?? Infinity) ? expiresAt : request.deadline,
  }
}

/**
 * The model, or its successor, for calls of this caller. Without a caller it is the model's own calls, so that requests
 * of front ends and clients cost nothing more.
 */
export const callableBy = (caller: CallerService | undefined, given: RunningModel): CallableModel => {
  const model = given.reachedBy(caller?.cycles)
  const { calls } = model
  if (caller === undefined) return calls
  const { cycles, trace } = caller
  const checked =
    cycles === undefined || calls.cycles === undefined ? calls : withCycleCheck(cycles, model, calls.cycles)
  if (trace === undefined) return checked
  const { description } = model
  const spanned = trace.below === undefined ? checked : withChildSpan(trace.below, description.name, checked)
  if (trace.child !== undefined) return withChildTrace(trace.child.bind(trace), description, spanned)
  return trace.below === undefined && cycles === undefined ? withTrace(trace, spanned) : spanned
}

const withCycleCheck = (caller: CallCycleDetector, model: RunningModel, callee: CallCycleDetector): CallableModel => {
  const {
    description: { statistics },
  } = model
  return {
    decoupled: model.calls.decoupled,
    emits: model.calls.emits,
    submit: (request, reply) => {
      const refusal = caller.begin(callee)
      if (refusal !== undefined) {
        statistics.failed("REJECTED", 0)
        reply(Result.fail(refusal))
        return constVoid
      }
      let isOver = false
      const end = () => {
        if (isOver) return
        isOver = true
        caller.end(callee)
      }
      const cancel = model.calls.submit(request, (outcome) => {
        end()
        reply(outcome)
      })
      return () => {
        end()
        cancel()
      }
    },
  }
}

/** Each call is a span below that of its caller. */
const withChildSpan = (below: NonNullable<Trace["below"]>, name: string, model: CallableModel): CallableModel => ({
  emits: model.emits,
  decoupled: model.decoupled,
  submit: (request, reply) => {
    const trace = below(`infer ${name}`, request.trace)
    const cancel = model.submit({ ...request, trace }, (outcome) => {
      trace.end(Result.isSuccess(outcome) ? Exit.void : Exit.fail(outcome.failure))
      reply(outcome)
    })
    return () => {
      cancel()
      trace.end(Exit.interrupt())
    }
  },
})

/** Each call is part of its caller's span. */
const withTrace = (trace: Trace, model: CallableModel): CallableModel => ({
  emits: model.emits,
  decoupled: model.decoupled,
  submit: (request, reply) => model.submit({ ...request, trace }, reply),
})
