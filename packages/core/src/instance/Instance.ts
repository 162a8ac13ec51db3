/**
 * An instance executes batches: an ONNX session in a worker, or a handler. The scheduler gives it at most `concurrency`
 * batches at once, and none unless its status is `available`.
 */
import { type Context, Effect, type Exit, type Result } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { Batch } from "../batch/Batch.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Permit } from "../limiter/Permit.ts"
import type { GroupLimits } from "../limiter/Resource.ts"
import type { Response } from "../request/Request.ts"
import type { LentMemory } from "../tensor/LentMemory.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"

export interface ExecutionResult {
  /** One outcome per request of the batch, in its order: requests of one batch fail alone. */
  readonly outcomes: ReadonlyArray<Result.Result<Response, InferenceError>>
  /** Nanoseconds spent on bringing the inputs in. */
  readonly inputDuration: number
  /** Nanoseconds of the execution, excluding waiting in the instance. Default: all other time. */
  readonly inferDuration?: number
  /** Nanoseconds spent on taking the outputs out. */
  readonly outputDuration: number
  /** Memory of the outputs from `copiedFrom` of the batch on, until it is reclaimed. Default: until `settle` returns. */
  readonly lent?: LentMemory
  /** Outputs of all rows from `copiedFrom` of the batch on. Set if the batch is `joined`. */
  readonly joined?: ReadonlyArray<TypedTensor>
}

/** `restarting` after a crash, `failed` for good once it has given up. */
export type InstanceStatus = "available" | "restarting" | "failed"

/** Takes the end of a batch, once. A failure is the failure of every request of the batch. */
export type Settle = (exit: Exit.Exit<ExecutionResult, InferenceError>) => void

/**
 * Interrupts a batch for which no caller waits; or the request at this index, if the instance supports that.
 * Interruptible work ends soon; the batch settles in any case.
 */
export type Interrupt = (request?: number) => void

/** `interruptTimeout` of code that runs in JavaScript, in milliseconds. */
export const defaultInterruptTimeout = 1000

/** Instances that are alike, as the protocol's configuration shows them. */
export interface InstanceGroup {
  readonly name: string
  readonly kind: "CPU" | "GPU"
  /** Number of instances; for each GPU, if there are any. */
  readonly count: number
  readonly gpus: ReadonlyArray<number>
  /** Resources and priority for the rate limiter. */
  readonly rateLimiter?: GroupLimits | undefined
}

export interface Instance {
  /** `<model>_<group>_<index>`, for the log. */
  readonly name: string
  /** Maximum concurrent batches: 1, or 2 if the instance prepares the next batch during execution. */
  readonly concurrency: number
  /** The model's call cycle detector, if the code of its instances may call other models. */
  readonly cycles?: CallCycleDetector
  /** Whether `Interrupt` may be called for single requests. Default false. */
  readonly interruptsRequests?: boolean
  /**
   * Milliseconds that a stop waits for a batch after its interruption. The instance is then released while the batch
   * still runs. Default: until the batch ends.
   */
  readonly interruptTimeout?: number
  /** Whether a batch may be `joined`. Default false. */
  readonly takesJoined?: boolean
  readonly status: () => InstanceStatus
  /** Set by the scheduler: the instance calls it whenever its status has changed. */
  onStatusChange: () => void
  /** Set by the owner of the instance, once it is built: a batch needs it. Undefined: batches start at once. */
  permit?: Permit | undefined
  /** Begins at once, and settles whenever it has ended, perhaps before this returns. */
  readonly execute: (batch: Batch, settle: Settle) => Interrupt
}

/** An instance around `inner`, with its name and status, that transforms tensors. */
export const wrapInstance = (inner: Instance, execute: Instance["execute"]): Instance => ({
  name: inner.name,
  concurrency: inner.concurrency,
  ...(inner.cycles === undefined ? {} : { cycles: inner.cycles }),
  ...(inner.interruptsRequests === undefined ? {} : { interruptsRequests: inner.interruptsRequests }),
  ...(inner.interruptTimeout === undefined ? {} : { interruptTimeout: inner.interruptTimeout }),
  status: inner.status,
  get onStatusChange() {
    return inner.onStatusChange
  },
  set onStatusChange(listener) {
    inner.onStatusChange = listener
  },
  execute,
})

/** An `execute` function from an effect, which runs on a separate fiber and starts immediately. */
export const fromEffect =
  <R>(
    context: Context.Context<R>,
    execute: (batch: Batch) => Effect.Effect<ExecutionResult, InferenceError, R>,
  ): Instance["execute"] =>
  (batch, settle) => {
    const fiber = Effect.runForkWith(context)(execute(batch))
    fiber.addObserver(settle)
    return (request) => {
      if (request === undefined) fiber.interruptUnsafe()
    }
  }
