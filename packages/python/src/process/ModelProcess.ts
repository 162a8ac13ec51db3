/**
 * The server's side of one model process, from its start to its exit: sends batches to its instances, receives outcomes
 * and responses, cancels requests, ends executions that take too long, and stops the process. Supervisor.ts of core
 * starts another one after its death.
 */
import { Deferred, Effect, Exit, type Fiber } from "effect"
import { constVoid } from "effect/Function"
import type { Batch } from "@nereid/core/internal/batch/Batch"
import { ExecutionFailed, Unavailable } from "@nereid/core/Errors"
import type { Interrupt, Settle } from "@nereid/core/internal/instance/Instance"
import type { Supervised } from "@nereid/core/internal/instance/Supervisor"
import type { Request } from "@nereid/core/internal/request/Request"
import type { SequenceId } from "@nereid/core/internal/request/SequencePosition"
import * as SequenceEndings from "@nereid/core/internal/sequence/SequenceEndings"
import type { EndReason } from "@nereid/core/internal/sequence/SequenceEndings"
import type { PythonLoadError } from "./PythonLoadError.ts"
import * as ExecuteMessage from "../wire/ExecuteMessage.ts"
import { ExecutionHeaderReader } from "../wire/ExecutionHeader.ts"
import * as FrameKind from "../wire/FrameKind.ts"
import { FrameBody } from "../wire/FrameBody.ts"
import type { Frame } from "../wire/FrameReader.ts"
import * as Header from "../wire/Header.ts"
import { ControlCalls } from "./ControlCalls.ts"
import { ExecuteTimer } from "./ExecuteTimer.ts"
import { Execution } from "./Execution.ts"
import { OpenRequest, stopping } from "./OpenRequest.ts"
import * as OutputCheck from "./OutputCheck.ts"
import type { ProcessOptions } from "./ProcessOptions.ts"
import * as ProcessStart from "./ProcessStart.ts"
import * as ReadyCheck from "./ReadyCheck.ts"
import type { SpawnedProcess } from "./SpawnedProcess.ts"
import { Stacks } from "./Stacks.ts"

/** Starts a process with its model. If it fails or is interrupted, the process has ended. */
export const start = (options: ProcessOptions): Effect.Effect<ModelProcess, PythonLoadError> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<never>()
    const run = Effect.runForkWith(context)
    let spawned: SpawnedProcess | undefined
    const calls = new ControlCalls({
      ports: options.ports,
      maxCalls: options.callThreads,
      run,
      send: (kind, header, body) => spawned?.sendControl(kind, header, body),
    })
    const starting = ProcessStart.start({
      ...options,
      onControl: (frame) => calls.receive(frame),
      onSpawned: (process) => (spawned = process),
    })
    const started = yield* Effect.onError(starting, () => Effect.sync(() => calls.close()))
    return new ModelProcess(options, started, calls, run)
  }).pipe(Effect.uninterruptible)

type Run = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

interface Running {
  readonly execution: Execution
  /** Name of the instance. */
  readonly instance: string
  timer: ExecuteTimer | undefined
}

export class ModelProcess implements Supervised {
  readonly exited = Deferred.makeUnsafe<string>()
  /** Form of the code, which tells whether it has any number of responses. */
  readonly form: ProcessStart.ExecuteForm
  readonly #options: ProcessOptions
  /** Names of the instances. */
  readonly #names: ReadonlyArray<string>
  readonly #spawned: SpawnedProcess
  readonly #calls: ControlCalls
  readonly #run: Run
  readonly #encode: ExecuteMessage.Encoder
  readonly #headers = new ExecutionHeaderReader()
  readonly #check: OutputCheck.OutputCheck
  readonly #readyCheck: ReadyCheck.ReadyCheck | undefined
  readonly #stacks: Stacks
  readonly #learnsEnds: boolean
  /** From their start to the last response of their last request. */
  readonly #executions = new Map<number, Running>()
  readonly #decoupled: boolean
  #state: "running" | "stopping" | "broken" | "exited" = "running"
  #next = 1
  /** Number of executions that have not returned. */
  #busy = 0
  #onExit = constVoid
  /** Why it was ended, for its requests; undefined for a process that has died by itself. */
  #ended: string | undefined

  constructor(options: ProcessOptions, started: ProcessStart.StartedProcess, calls: ControlCalls, run: Run) {
    const { signature, maxBatchSize, source, model, outputs, ports } = options
    const batching = maxBatchSize > 0
    this.#options = options
    this.#names = [options, ...options.threads].map(({ name }) => name)
    this.#spawned = started.spawned
    this.#calls = calls
    this.#run = run
    this.form = started.form
    this.#decoupled = options.decoupled || isGenerator(started.form)
    this.#encode =
      source.functionName === undefined
        ? ExecuteMessage.requests(signature, started.mapsShared)
        : ExecuteMessage.joined(signature, batching, started.mapsShared)
    this.#check = OutputCheck.make({
      model,
      specs: signature.outputs,
      batching,
      rule: outputs,
      warn: (message) => ports.log({ level: "WARN", message, file: "", line: 0 }),
    })
    this.#readyCheck = started.hasReady
      ? new ReadyCheck.ReadyCheck(options.name, (kind, header) => this.#spawned.sendControl(kind, header))
      : undefined
    this.#learnsEnds = started.hasSequenceEnded
    this.#stacks = new Stacks(() => this.#spawned)
    // Without executions, it does not keep Node running.
    started.spawned.unref()
    started.listen({
      onControl: (frame) => this.#receiveControl(frame),
      onData: (frame) => this.#receiveData(frame),
      onBroken: () => this.#break(),
      onExit: (reason) => this.#exit(reason),
    })
  }

  get isAlive(): boolean {
    return this.#state === "running" || this.#state === "stopping"
  }

  get pid(): number | undefined {
    return this.#spawned.pid
  }

  /** Whether the model says that it is ready. */
  get isReady(): Effect.Effect<ReadyCheck.Readiness> {
    return Effect.callback((resume) => {
      if (!this.isAlive) return resume(Effect.succeed({ isReady: false, reason: notHealthy(this.#options.name) }))
      if (this.#readyCheck === undefined) return resume(Effect.succeed(ReadyCheck.ready))
      this.#readyCheck.check((readiness) => resume(Effect.succeed(readiness)))
    })
  }

  execute(batch: Batch, settle: Settle, thread = 0): Interrupt {
    const name = this.#names[thread] ?? this.#options.name
    if (this.#state !== "running") {
      const message = `the process of instance '${name}' is not running`
      settle(Exit.fail(new Unavailable({ message })))
      return constVoid
    }
    const { maxBatchSize, limits } = this.#options
    const startedAt = performance.now()
    const number = this.#next++
    const message = this.#encode(number, batch)
    if (this.#executions.size === 0) this.#spawned.ref()
    this.#busy += 1
    this.#spawned.sendData(thread, FrameKind.EXECUTE, message.header, message.body)
    if (this.#learnsEnds) SequenceEndings.watch(batch.requests, (id, end) => this.#tellEnd(thread, id, end))
    const execution = new Execution({
      batch,
      instance: name,
      decoupled: this.#decoupled,
      batching: maxBatchSize > 0,
      check: this.#check,
      inputDuration: (performance.now() - startedAt) * 1e6,
      open: (request, index) => this.#open(number, request, index, thread),
      settle: (exit) => {
        running.timer?.stop()
        this.#busy -= 1
        settle(exit)
      },
    })
    const running: Running = { execution, instance: name, timer: undefined }
    if (limits.executeTimeout !== undefined) {
      running.timer = new ExecuteTimer(limits.executeTimeout, () => this.#overrun(name, limits.executeTimeout))
    }
    this.#executions.set(number, running)
    return (request) => execution.cancel(request)
  }

  /** Behind the execution of its last request, so that the instance does one after the other. */
  #tellEnd(thread: number, id: SequenceId, reason: EndReason): void {
    if (this.#state !== "running") return
    const text = typeof id === "string" ? JSON.stringify(id) : String(id)
    this.#spawned.sendData(thread, FrameKind.SEQUENCE_ENDED, `{"c":${text},"e":"${reason}"}`, new FrameBody())
  }

  #open(number: number, request: Request, index: number, thread: number): OpenRequest {
    return new OpenRequest({
      request,
      decoupled: this.#decoupled,
      fork: this.#run,
      onCancel: () => this.#spawned.sendControl(FrameKind.CANCEL, `{"x":${number},"q":${index},"t":${thread}}`),
      give: (count) =>
        this.#spawned.sendControl(FrameKind.CREDIT, `{"x":${number},"q":${index},"t":${thread},"n":${count}}`),
      onWait: (waits) => this.#executions.get(number)?.timer?.waits(waits),
    })
  }

  /** An execution takes too long: logs where it is, and ends the process. */
  #overrun(name: string, timeout: number | undefined): void {
    if (!this.isAlive) return
    const { ports } = this.#options
    const reason = `execute of instance '${name}' did not end within ${timeout} ms`
    this.#stacks.dump((text) => {
      ports.log({ level: "ERROR", message: `${reason}:\n${text}`, file: "", line: 0 })
      this.#ended = `${reason}; its process was ended`
      this.#spawned.kill(reason)
    })
  }

  /**
   * Lets the code end: it finishes its execution and `finalize`. A process that does not end in time is killed, and one
   * whose execution outlasted its interruption at once. Harmless if it has exited.
   */
  get stop(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#state === "running") {
        this.#state = "stopping"
        this.#spawned.ref()
        for (const { execution } of this.#executions.values()) if (execution.isSettled) execution.fail(stopping())
        if (this.#busy > 0) this.#spawned.kill("an execution did not end after its interruption")
        else {
          this.#spawned.sendControl(FrameKind.STOP, "{}")
          const { stopTimeout } = this.#options.limits
          const timer = setTimeout(() => this.#spawned.kill(`it did not end within ${stopTimeout} ms`), stopTimeout)
          this.#onExit = () => clearTimeout(timer)
        }
      }
      return Effect.asVoid(Deferred.await(this.exited))
    }).pipe(Effect.uninterruptible)
  }

  #receiveData({ kind, header: text, body, release }: Frame): void {
    const { execution: number, fields } = this.#headers.read(text)
    const running = this.#executions.get(number)
    // The late responses of requests that have failed.
    if (running === undefined) return
    if (kind === FrameKind.RETURNED) running.execution.returned(fields, body, release)
    else if (kind === FrameKind.RESPONSE) running.execution.responded(fields, body)
    else throw new Error(`a frame of kind ${kind} came on the data socket`)
    if (!running.execution.isOver) return
    running.execution.release()
    this.#executions.delete(number)
    if (this.#executions.size === 0 && this.#state === "running") this.#spawned.unref()
  }

  #receiveControl(frame: Frame): void {
    if (this.#calls.receive(frame)) return
    const header = Header.parse(frame.header)
    if (frame.kind === FrameKind.READY) return this.#readyCheck?.received(header)
    if (frame.kind === FrameKind.STACKS) return this.#stacks.received(header)
    if (frame.kind !== FrameKind.STOPPED) throw new Error(`a frame of kind ${frame.kind} came on the control socket`)
    const error = Header.text(header, "e")
    if (error === undefined) return
    const { name, ports } = this.#options
    ports.log({ level: "INFO", message: `finalize of instance '${name}' failed: ${error}`, file: "", line: 0 })
  }

  #break(): void {
    if (this.#state !== "stopping") this.#state = "broken"
    const executions = [...this.#executions.values()]
    this.#executions.clear()
    for (const { execution, instance } of executions) {
      execution.fail(new ExecutionFailed({ message: this.#ended ?? notHealthy(instance) }))
      execution.release()
    }
    this.#readyCheck?.close(this.#ended ?? notHealthy(this.#options.name))
    this.#calls.close()
  }

  #exit(reason: string): void {
    this.#state = "exited"
    this.#onExit()
    Deferred.doneUnsafe(this.exited, Effect.succeed(reason))
  }
}

/** Whether code of this form has any number of responses. */
export const isGenerator = (form: ProcessStart.ExecuteForm): boolean =>
  form === "generator" || form === "async-generator"

/** In the words of Triton. */
const notHealthy = (instance: string) => `Stub process '${instance}' is not healthy.`
