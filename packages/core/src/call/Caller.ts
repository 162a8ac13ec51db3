/**
 * Who asks a model: code that answers a request of another model has its deadline kept, its id passed on and circles found,
 * without a word in it. Effects carry it with their fiber, promises through HandledRequest's `run`. Callers that answer
 * nothing themselves, such as front ends and clients, are none, unless they are traced.
 */
import { constVoid } from "effect/Function"
import { type Clock, Context, Exit, type Fiber, Result } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { ParameterCodec } from "../model/ParameterFields.ts"
import type { Request, Trace } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { CallableModel } from "../running/CallableModel.ts"

export interface CallerService {
  /** The model whose code it is; undefined for any other code. */
  readonly cycles: CallCycleDetector | undefined
  /** Of the request that it answers; empty where there is none, or are several. */
  readonly id: string
  /** Milliseconds of the clock after which nobody waits for what it answers. */
  readonly deadline: number | undefined
  /** Of the request that it answers, where that is followed. */
  readonly trace?: Trace | undefined
}

/** Of the fiber that calls. */
export const Caller = Context.Reference<CallerService | undefined>("@nereid/core/Caller", {
  defaultValue: () => undefined,
})

/** Who asks from this fiber. */
export const callerOf = (fiber: Fiber.Fiber<unknown, unknown>): CallerService | undefined => {
  const caller = fiber.getRef(Caller)
  if (caller !== undefined) return caller
  const { span, tracer } = fiber.cache
  // Without a tracer that somebody has provided, nobody ever sees its spans.
  if (span?._tag !== "Span" || tracer === undefined) return undefined
  return { cycles: undefined, id: "", deadline: undefined, trace: { at: constVoid, span } }
}

/** What the code of one instance runs with, the same for all of its requests. */
export interface Handling {
  /** The name of the instance. */
  readonly instance: string
  readonly cycles: CallCycleDetector
  readonly clock: Clock.Clock
  readonly context: Context.Context<never>
  /** What the model declares of the parameters of its responses. */
  readonly told: ParameterCodec | undefined
}

/** The request as part of what the caller answers. */
export const bounded = (request: Request, caller: CallerService | undefined): Request => {
  if (caller === undefined) return request
  const { deadline = Infinity } = caller
  return {
    ...request,
    id: request.id === "" ? caller.id : request.id,
    deadline: deadline < (request.deadline ?? Infinity) ? deadline : request.deadline,
  }
}

/**
 * The model as this caller may ask it, or the one in its place if it has left. One that is never asked by code, and one that asks
 * nobody, cost nothing.
 */
export const askedBy = (caller: CallerService | undefined, given: RunningModel): CallableModel => {
  const model = given.reachedBy(caller?.cycles)
  const { calls } = model
  if (caller === undefined) return calls
  const { cycles, trace } = caller
  const permitted =
    cycles === undefined || calls.cycles === undefined ? calls : permittedTo(cycles, model, calls.cycles)
  if (trace?.below !== undefined) return traced(trace.below, model.description.name, permitted)
  return cycles === undefined && trace !== undefined ? part(trace, permitted) : permitted
}

const permittedTo = (caller: CallCycleDetector, model: RunningModel, asked: CallCycleDetector): CallableModel => {
  const {
    description: { statistics },
  } = model
  return {
    decoupled: model.calls.decoupled,
    emits: model.calls.emits,
    submit: (request, reply) => {
      const refusal = caller.begin(asked)
      if (refusal !== undefined) {
        statistics.failed("REJECTED", 0)
        reply(Result.fail(refusal))
        return constVoid
      }
      let isOver = false
      const end = () => {
        if (isOver) return
        isOver = true
        caller.end(asked)
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
const traced = (below: NonNullable<Trace["below"]>, name: string, model: CallableModel): CallableModel => ({
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
const part = (trace: Trace, model: CallableModel): CallableModel => ({
  emits: model.emits,
  decoupled: model.decoupled,
  submit: (request, reply) => model.submit({ ...request, trace }, reply),
})
