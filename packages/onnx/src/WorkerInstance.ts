/**
 * Main thread's side of one worker thread of an ONNX session: passes batches to the thread, receives their outcomes and
 * stops the thread. Supervisor.ts starts another thread after this one has ended.
 *
 *   execute ─► slot or message ─► HEAD + 1, notify ─► worker ─► DONE + 1, notify ─► outcome ─► settle
 *
 * The worker takes batches in the order of their sequence numbers and completes them in this order.
 */
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { Definition } from "@nereid/core/internal/model/Definition"
import { ExecutionFailed, type InferenceError, type InvalidRequest, Unavailable } from "@nereid/core/Errors"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { Response } from "@nereid/core/internal/request/Request"
import type { ExecutionResult, Interrupt, Settle } from "@nereid/core/internal/instance/Instance"
import type { Supervised } from "@nereid/core/internal/instance/Supervisor"
import { LentMemory } from "@nereid/core/internal/tensor/LentMemory"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { constVoid } from "effect/Function"
import { Deferred, Effect, Exit, Result } from "effect"
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker, type WorkerOptions } from "node:worker_threads"
import * as DynamicSlot from "./DynamicSlot.ts"
import * as GeneralBatch from "./GeneralBatch.ts"
import * as OnnxLoadError from "./OnnxLoadError.ts"
import * as SlotBatch from "./SlotBatch.ts"
import * as Slots from "./Slots.ts"
import type { LoadReply, BatchReply, SessionOptions, SessionStart, TensorName } from "./SessionProtocol.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export interface WorkerInstanceOptions {
  /** Name of the instance and its thread. */
  readonly name: string
  readonly definition: Definition<Fields, Fields>
  readonly session: SessionOptions
  /** Starts the thread; tests wrap it to get hold of the thread. */
  readonly spawn: Spawn
}

export type Spawn = (options: WorkerOptions) => Worker

// `import.meta.resolve` goes through the package's exports: the same line works from source and when built.
export const spawn: Spawn = (options) =>
  new Worker(new URL(import.meta.resolve("@nereid/onnx/internal/worker")), options)

/**
 * A worker that has loaded its session. Not to be interrupted, as ending a thread that loads would abort the process;
 * when it fails, the thread has exited.
 */
export const start = (options: WorkerInstanceOptions): Effect.Effect<WorkerInstance, OnnxLoadError.OnnxLoadError> => {
  const { name, definition, session } = options
  const { signature, maxBatchSize, sequencing } = definition
  const load = Effect.callback<
    { instance: WorkerInstance; refused: ReadonlyArray<string> },
    OnnxLoadError.OnnxLoadError
  >((resume) => {
    const fail = (reason: string) => resume(Effect.fail(OnnxLoadError.make(definition.name, session.file, reason)))
    const layout = Slots.layout({ ...signature, states: sequencing?.states }, maxBatchSize)
    const dynamic = layout === undefined ? DynamicSlot.layout(signature, maxBatchSize) : undefined
    const memory = Slots.allocate(layout ?? dynamic)
    const { port1, port2 } = new MessageChannel()
    const workerData: SessionStart = {
      session,
      inputs: signature.inputs.map(tensorName),
      outputs: signature.outputs.map(tensorName),
      layout,
      dynamic,
      memory,
      port: port2,
    }
    let worker: Worker
    try {
      worker = options.spawn({ name, workerData, transferList: [port2] })
    } catch (error) {
      return fail(`the worker thread failed to start: ${errorMessage(error)}`)
    }
    let reason: string | undefined
    const onError = (error: unknown) => (reason = `its worker thread died: ${errorMessage(error)}`)
    const onExit = (code: number) => {
      port1.close()
      fail(reason ?? `its worker thread exited with code ${code}`)
    }
    worker.once("error", onError)
    worker.once("exit", onExit)
    worker.once("message", (loading: LoadReply) => {
      if (loading._tag === "LoadFailed") {
        reason = loading.message
        return
      }
      worker.off("error", onError)
      worker.off("exit", onExit)
      const instance = new WorkerInstance(definition, worker, port1, { memory, layout, dynamic })
      resume(Effect.succeed({ instance, refused: loading.refused }))
    })
  })
  return Effect.uninterruptible(load).pipe(
    Effect.tap(({ refused }) =>
      Effect.forEach(
        refused,
        (reason) => Effect.logWarning(`Instance ${name} uses a fallback execution provider: ${reason}`),
        {
          discard: true,
        },
      ),
    ),
    Effect.map(({ instance }) => instance),
    Effect.uninterruptible,
  )
}

const tensorName = ({ name, datatype }: TensorSpec): TensorName => ({ name, datatype })

interface InFlight {
  readonly batch: Batch.Batch
  readonly inputDuration: number
  readonly settle: Settle
}

type SharedSlots = Pick<SessionStart, "memory" | "layout" | "dynamic">

export class WorkerInstance implements Supervised {
  /** Completed with the reason once the thread has ended. */
  readonly exited = Deferred.makeUnsafe<string>()

  readonly #definition: Definition<Fields, Fields>
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #memory: SharedArrayBuffer
  readonly #control: Int32Array<SharedArrayBuffer>
  readonly #durations: Float64Array<SharedArrayBuffer>
  readonly #layout: Slots.Layout | undefined
  /** Slots for dynamic shapes; empty if the shapes are fixed or slots are impossible. */
  readonly #dynamic: ReadonlyArray<DynamicSlot.DynamicSlot> = []
  readonly #takesText: boolean
  /** The state outputs of each slot. */
  readonly #lent = Array.from({ length: Slots.slotCount }, () => new LentMemory())
  /** Batches by sequence number, from #done to #head; at most one per slot. */
  readonly #inFlight: Array<InFlight> = []
  #head = 0
  #done = 0
  #watching = false
  #state: "running" | "stopping" | "exited" = "running"

  constructor(
    definition: Definition<Fields, Fields>,
    worker: Worker,
    port: MessagePort,
    { memory, layout, dynamic }: SharedSlots,
  ) {
    this.#definition = definition
    this.#worker = worker
    this.#port = port
    this.#memory = memory
    this.#control = Slots.control(memory)
    this.#durations = Slots.durations(memory)
    this.#layout = layout
    if (dynamic !== undefined) {
      this.#dynamic = Array.from(
        { length: Slots.slotCount },
        (_, slot) => new DynamicSlot.DynamicSlot(dynamic, memory, Slots.slotOffset(dynamic, slot)),
      )
    }
    this.#takesText = definition.signature.inputs.some(({ datatype }) => datatype === "BYTES")
    let reason: string | undefined
    worker.once("error", (error: unknown) => (reason = errorMessage(error)))
    worker.once("exit", (code) => this.#exit(reason ?? `exit code ${code}`))
    // Without batches in flight, the thread does not keep the process alive.
    worker.unref()
  }

  get isAlive(): boolean {
    return this.#state !== "exited"
  }

  /** A batch in a slot cannot be cancelled: only the worker frees the slot. */
  execute(batch: Batch.Batch, settle: Settle): Interrupt {
    this.#begin(batch, settle)
    return constVoid
  }

  #begin(batch: Batch.Batch, settle: Settle): void {
    if (!this.#takesText) return this.#run(batch, settle)
    const refusals = batch.requests.map((request) => GeneralBatch.refusal(this.#definition, request))
    const accepted = refusals.flatMap((refusal, index) => (refusal === undefined ? [index] : []))
    if (accepted.length === batch.requests.length) return this.#run(batch, settle)
    if (accepted.length === 0) return settle(Exit.succeed(withRefusals(refusals, [])))
    this.#run(Batch.select(batch, accepted), (exit) =>
      settle(Exit.map(exit, (execution) => ({ ...execution, ...withRefusals(refusals, execution.outcomes) }))),
    )
  }

  #run(batch: Batch.Batch, settle: Settle): void {
    if (this.#state !== "running") return settle(Exit.fail(this.#unavailable()))
    if (this.#inFlight.length === Slots.slotCount) {
      return settle(Exit.die(`${this.#inFlight.length} batches are in flight already. This is a bug.`))
    }
    const startedAt = performance.now()
    const kind = this.#writeBatch(batch)
    this.#inFlight.push({ batch, inputDuration: (performance.now() - startedAt) * 1e6, settle })
    this.#advance(kind)
    if (!this.#watching) this.#watch()
  }

  /** Writes the batch into a slot or a message for the worker; returns its kind word. */
  #writeBatch(batch: Batch.Batch): number {
    const layout = this.#layout
    const rows = Batch.totalRows(batch)
    if (layout !== undefined && rows <= layout.rows) {
      const isLinked = SlotBatch.isLinked(layout, batch, this.#memory, Slots.slotOffset(layout, Slots.next(this.#head)))
      SlotBatch.write(layout, this.#slot(layout, this.#head), batch, isLinked)
      this.#lentOf(this.#head)?.reclaim()
      return isLinked ? rows + Slots.LINKED : rows
    }
    const tensors = Batch.inputs(batch)
    const dynamic = this.#dynamicOf(this.#head)
    if (dynamic?.writeInputs(tensors) === true) return Slots.DYNAMIC
    const message = GeneralBatch.encode(tensors)
    this.#port.postMessage(message, GeneralBatch.buffers(message))
    return Slots.GENERAL
  }

  #slot(layout: Slots.Layout, sequence: number): Uint8Array {
    return new Uint8Array(this.#memory, Slots.slotOffset(layout, sequence), layout.slotBytes)
  }

  #dynamicOf(sequence: number): DynamicSlot.DynamicSlot | undefined {
    return this.#dynamic[sequence & (Slots.slotCount - 1)]
  }

  /** The memory of the outputs of the slot in which this batch stands. */
  #lentOf(sequence: number): LentMemory | undefined {
    return this.#lent[sequence & (Slots.slotCount - 1)]
  }

  #advance(kind: number): void {
    Atomics.store(this.#control, Slots.kindWord(this.#head), kind)
    this.#head = Slots.next(this.#head)
    Atomics.store(this.#control, Slots.HEAD, this.#head)
    Atomics.notify(this.#control, Slots.HEAD)
  }

  /**
   * Waits for completions for as long as anything is in flight; `waitAsync` does not keep the process alive, the thread
   * does.
   */
  #watch(): void {
    if (!this.#watching) this.#worker.ref()
    this.#watching = true
    const { async, value } = Atomics.waitAsync(this.#control, Slots.DONE, this.#done)
    if (async) void value.then(() => this.#complete())
    else this.#complete()
  }

  #complete(): void {
    if (this.#state === "exited") return
    this.#takeDone()
    if (this.#inFlight.length > 0) return this.#watch()
    this.#watching = false
    if (this.#state === "running") this.#worker.unref()
  }

  #takeDone(): void {
    while (this.#done !== Atomics.load(this.#control, Slots.DONE)) {
      const inFlight = this.#inFlight.shift()
      const outcome = inFlight && this.#outcome(inFlight)
      this.#done = Slots.next(this.#done)
      if (outcome !== undefined) inFlight?.settle(outcome)
    }
  }

  /** Returns the outcome of the batch at #done. After this call, its slot may be used again. */
  #outcome({ batch, inputDuration }: InFlight): Exit.Exit<ExecutionResult, InferenceError> {
    const startedAt = performance.now()
    const inferDuration = this.#durations[Slots.durationWord(this.#done)] ?? 0
    const isInSlot = Atomics.load(this.#control, Slots.outcomeWord(this.#done)) === Slots.IN_SLOT
    const layout = isInSlot ? this.#layout : undefined
    const responses = layout === undefined ? this.#decoded(batch, isInSlot) : Result.succeed(this.#read(layout, batch))
    if (Result.isFailure(responses)) return Exit.fail(responses.failure)
    const outcomes = responses.success.map((response) => Result.succeed(response))
    const outputDuration = (performance.now() - startedAt) * 1e6
    const result = { outcomes, inputDuration, inferDuration, outputDuration }
    const lent = layout && this.#lentOf(this.#done)
    return Exit.succeed(lent === undefined ? result : { ...result, lent })
  }

  #read(layout: Slots.Layout, batch: Batch.Batch): ReadonlyArray<Response> {
    return SlotBatch.read(layout, this.#slot(layout, this.#done), batch)
  }

  /** Decodes outputs whose shapes are known only after the run, from a dynamic slot or a message. */
  #decoded(batch: Batch.Batch, isInSlot: boolean): Result.Result<ReadonlyArray<Response>, InferenceError> {
    const slot = isInSlot ? this.#dynamicOf(this.#done) : undefined
    if (slot !== undefined) return GeneralBatch.decode(this.#definition, batch, slot.copyOutputs())
    const received: { message: BatchReply } | undefined = receiveMessageOnPort(this.#port)
    if (received === undefined) {
      return Result.fail(new ExecutionFailed({ message: "no message came with the outcome. This is a bug." }))
    }
    return received.message._tag === "Outputs"
      ? GeneralBatch.decode(this.#definition, batch, received.message.outputs)
      : Result.fail(new ExecutionFailed({ message: `onnx runtime error: ${received.message.message}` }))
  }

  /** Tells the worker to exit after the batches in flight, and waits for it. Harmless if it has exited. */
  get stop(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#state === "running") {
        this.#state = "stopping"
        this.#worker.ref()
        this.#advance(Slots.STOP)
      }
      return Effect.asVoid(Deferred.await(this.exited))
    }).pipe(Effect.uninterruptible)
  }

  #exit(reason: string): void {
    this.#takeDone()
    this.#state = "exited"
    this.#port.close()
    for (const memory of this.#lent) memory.reclaim()
    // Ends a pending waitAsync, which would keep the memory alive.
    Atomics.notify(this.#control, Slots.DONE)
    const { name } = this.#definition
    const message = `the worker thread of model '${name}' died while it had this batch: ${reason}`
    for (const { settle } of this.#inFlight.splice(0)) settle(Exit.fail(new ExecutionFailed({ message })))
    Deferred.doneUnsafe(this.exited, Effect.succeed(reason))
  }

  #unavailable(): Unavailable {
    return new Unavailable({ message: `the worker thread of model '${this.#definition.name}' is not running` })
  }
}

/** The outcomes of all requests, given those of the requests that were not refused. */
const withRefusals = (
  refusals: ReadonlyArray<InvalidRequest | undefined>,
  outcomes: ExecutionResult["outcomes"],
): ExecutionResult => {
  const accepted = outcomes.values()
  return {
    outcomes: refusals.map((refusal) => {
      const outcome = refusal === undefined ? accepted.next().value : Result.fail(refusal)
      return outcome ?? Result.fail(new ExecutionFailed({ message: "a request has no outcome. This is a bug." }))
    }),
    inputDuration: 0,
    outputDuration: 0,
  }
}
