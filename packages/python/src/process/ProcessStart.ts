/**
 * Starts a model process and waits until its code is loaded:
 *
 *   spawn ─► START ─► LISTENING ─► connect the data socket ─► import, initialize ─► STARTED
 */
import { Deferred, Effect } from "effect"
import { wireDims, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import * as FrameKind from "../wire/FrameKind.ts"
import type { Frame } from "../wire/FrameReader.ts"
import * as Header from "../wire/Header.ts"
import type { ModelPorts } from "./ModelPorts.ts"
import * as CodeSource from "./CodeSource.ts"
import * as PythonLoadError from "./PythonLoadError.ts"
import type { ProcessOptions } from "./ProcessOptions.ts"
import { responsesAhead } from "./ResponseCredit.ts"
import { SpawnedProcess } from "./SpawnedProcess.ts"
import * as Stacks from "./Stacks.ts"

/** Form of `execute`, or of a function. */
export type ExecuteForm = "sync" | "async" | "generator" | "async-generator"

export interface StartedProcess {
  readonly spawned: SpawnedProcess
  readonly form: ExecuteForm
  /** Whether the code has an `is_ready`. */
  readonly hasReady: boolean
  /** Whether the code has a `sequence_ended`. */
  readonly hasSequenceEnded: boolean
  /** Whether it can open shared memory by the paths of the server. */
  readonly mapsShared: boolean
  /** Result of `auto_complete_config`, as JSON; undefined if the model has none, or after another start. */
  readonly config: Header.Header | undefined
  /** Takes over the events of the process. */
  readonly listen: (listener: ProcessListener) => void
}

export interface ProcessListener {
  readonly onControl: (frame: Frame) => void
  readonly onData: (frame: Frame) => void
  readonly onBroken: (reason: string) => void
  readonly onExit: (reason: string) => void
}

export interface StartOptions extends ProcessOptions {
  /** Only imports the file and calls `auto_complete_config`. */
  readonly isAutoComplete?: boolean
  /** Takes frames before the end of the start: the code may log, and use metrics. */
  readonly onControl: (frame: Frame) => boolean
  /** Takes the process before its first frame: the code may need answers while it loads. */
  readonly onSpawned: (spawned: SpawnedProcess) => void
}

/** Milliseconds until Python itself has started, on a machine that is busy or has a cold disk. */
const launchTimeout = 60_000

/** Lines of stderr that an error may show. */
const shownLines = 20

/** If it fails or is interrupted, also by the stop of a server while `initialize` runs, the process has ended. */
export const start = (options: StartOptions): Effect.Effect<StartedProcess, PythonLoadError.PythonLoadError> =>
  Effect.suspend(() => {
    const exited = Deferred.makeUnsafe<void>()
    let spawned: SpawnedProcess | undefined
    const end = Effect.suspend(() => {
      if (spawned === undefined) return Effect.void
      spawned.kill("its start was interrupted")
      return Deferred.await(exited)
    })
    const starting = Effect.callback<StartedProcess, PythonLoadError.PythonLoadError>((resume) => {
      const problem = { model: options.model, file: CodeSource.print(options.source), python: options.python }
      const errors: Array<string> = []
      let failure: PythonLoadError.PythonLoadError | undefined
      let listener: ProcessListener | undefined
      let timer: NodeJS.Timeout | undefined
      const fail = (reason: string, missing?: string) => {
        failure ??= PythonLoadError.make(problem, reason, missing)
        spawned?.kill(reason)
      }
      const limit = (millis: number | undefined, onTimeout: () => void) => {
        clearTimeout(timer)
        if (millis !== undefined) timer = setTimeout(onTimeout, millis)
      }
      const stacks = new Stacks.Stacks(() => spawned)
      const onListening = () => {
        limit(options.limits.initializeTimeout, () => {
          const reason = `initialize did not end within ${options.limits.initializeTimeout} ms`
          stacks.dump((text) => {
            options.ports.log({ level: "ERROR", message: `${reason}:\n${text}`, file: "", line: 0 })
            fail(reason)
          })
        })
        if (path !== undefined) spawned?.connect(path, 1 + options.threads.length)
      }
      const onStarted = (header: Header.Header) => {
        const error = Header.text(header, "e")
        if (error !== undefined) return fail(error, Header.text(header, "missing"))
        const started = spawned
        if (started === undefined) return
        clearTimeout(timer)
        started.share(Header.list(header, "memory"))
        const config = header["config"]
        resume(
          Effect.succeed({
            spawned: started,
            form: formOf(Header.text(header, "mode")),
            hasReady: header["has_ready"] === true || header["has_ready"] === 1,
            hasSequenceEnded: header["has_sequence_ended"] === true,
            mapsShared: header["maps"] === true,
            config: Header.isRecord(config) ? config : undefined,
            listen: (next) => (listener = next),
          }),
        )
      }
      const onControl = (frame: Frame) => {
        if (listener !== undefined) return listener.onControl(frame)
        if (frame.kind === FrameKind.LISTENING) return onListening()
        if (frame.kind === FrameKind.STARTED) return onStarted(Header.parse(frame.header))
        if (frame.kind === FrameKind.STACKS) return stacks.received(Header.parse(frame.header))
        if (options.onControl(frame) || frame.kind === FrameKind.STOPPED) return
        throw new Error(`a frame of kind ${frame.kind} came before the start`)
      }
      let path: string | undefined
      let changes = 0
      const forget = options.ports.logFilter?.onChange(() => {
        const levels = JSON.stringify({ ...logLevels(options.ports), n: ++changes })
        // At once for what the process executes, and ahead of the next execution, which may overtake the other frame.
        spawned?.sendControl(FrameKind.LOG_LEVEL, levels)
        spawned?.sendToAll(FrameKind.LOG_LEVEL, levels)
      })
      try {
        spawned = new SpawnedProcess(
          {
            python: options.python,
            environment: options.environment,
            printed: (line, stream) => {
              if (stream === "stderr" && listener === undefined) {
                errors.push(line)
                if (errors.length > shownLines) errors.shift()
              }
              options.ports.printed(line, stream)
            },
          },
          {
            onControl,
            onData: (frame) => listener?.onData(frame),
            onBroken: (reason) => {
              clearTimeout(timer)
              listener?.onBroken(reason)
            },
            onExit: (reason) => {
              forget?.()
              Deferred.doneUnsafe(exited, Effect.void)
              if (listener !== undefined) return listener.onExit(reason)
              const printed = errors.length === 0 ? "" : `\n${errors.join("\n")}`
              const died = `Stub process '${options.name}' is not healthy.`
              failure ??= PythonLoadError.make(problem, `${died} It ended with ${reason} before it was ready${printed}`)
              resume(Effect.fail(failure))
            },
          },
        )
        options.onSpawned(spawned)
        path = options.isAutoComplete === true ? undefined : spawned.makeSocketPath()
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (spawned === undefined) {
          forget?.()
          return resume(Effect.fail(PythonLoadError.make(problem, reason)))
        }
        return fail(reason)
      }
      limit(launchTimeout, () => fail(`Python did not start within ${launchTimeout} ms`))
      spawned.sendControl(FrameKind.START, JSON.stringify(startMessage(options, path)))
    })
    return Effect.onInterrupt(Effect.interruptible(starting), () => end)
  }).pipe(Effect.uninterruptible)

const startMessage = (
  {
    source,
    args,
    threads,
    signature,
    maxBatchSize,
    decoupled,
    concurrency,
    callThreads,
    limits,
    isAutoComplete,
    ports,
  }: StartOptions,
  data: string | undefined,
) => ({
  mode: isAutoComplete === true ? "autocomplete" : source.functionName === undefined ? "triton" : "function",
  file: source.file,
  ...(source.module !== undefined && { module: source.module }),
  ...(source.functionName !== undefined && { function: source.functionName }),
  ...(data !== undefined && { data }),
  args,
  version_dir: source.versionDirectory,
  model_dir: source.modelDirectory,
  decoupled,
  signature: {
    inputs: signature.inputs.map(fieldOf),
    outputs: signature.outputs.map(fieldOf),
    max_batch_size: maxBatchSize,
  },
  log: logLevels(ports),
  concurrency,
  credit: responsesAhead,
  threads: threads.map(({ args }) => args),
  bls_threads: callThreads,
  limits: limits.memory === undefined ? {} : { memory: limits.memory },
})

/** Levels of the log that the process sends. The names are those of the process. */
const logLevels = ({ logFilter }: Pick<ModelPorts, "logFilter">) => ({
  verbose: logFilter?.isOn("Debug") === false ? 0 : 1,
  info: logFilter?.isOn("Info") !== false,
  warning: logFilter?.isOn("Warn") !== false,
  error: logFilter?.isOn("Error") !== false,
})

const fieldOf = ({ name, datatype, dims, optional, form }: TensorSpec) => ({
  name,
  datatype,
  dims: wireDims(dims),
  optional,
  encoding: datatype !== "BYTES" ? null : form === "utf8" || form === "json" ? "utf8" : "bytes",
})

const forms: ReadonlyArray<ExecuteForm> = ["sync", "async", "generator", "async-generator"]

const formOf = (mode: string | undefined): ExecuteForm => forms.find((form) => form === mode) ?? "sync"
