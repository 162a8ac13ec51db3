/**
 * Session of one instance, in its worker thread (worker.ts): loads the file, then runs batches until the stop word. It
 * blocks in `Atomics.wait` or in the runtime, and never polls. The thread must end itself: `terminate()` during a run
 * or a load aborts the whole process. Effect-free, as the worker.
 */
import { env, InferenceSession, listSupportedBackends, type Tensor } from "onnxruntime-node"
import { dirname } from "node:path"
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import * as FileCall from "./file/FileCall.ts"
import { maxModelBytes } from "./file/ModelSize.ts"
import * as DynamicRun from "./DynamicRun.ts"
import * as OrtTensor from "./OrtTensor.ts"
import * as Provider from "./Provider.ts"
import * as Slots from "./Slots.ts"
import type { GeneralInputs, LoadReply, BatchReply, SessionOptions, SessionStart } from "./SessionProtocol.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

type Tensors = Record<string, Tensor>

/**
 * Silences ONNX Runtime's log. Errors are exceptions that reach a log or a reply; on stderr, clients could flood it.
 */
const silent = 4

/** Maximum cached tensors on a slot, one set for each number of rows. */
const maxCached = 256

const { session: options, inputs, outputs, layout, dynamic, memory, port }: SessionStart = workerData

/** A session with the first provider that works, and with those listed after it for what it cannot run. */
const load = async (): Promise<{ session: InferenceSession; provider: string; refused: ReadonlyArray<string> }> => {
  env.logLevel = "fatal"
  const available = listSupportedBackends().map(({ name }) => name)
  const model = await changedFile()
  const refused: Array<string> = []
  const reasons = new Set<string>()
  for (const [index, provider] of options.providers.entries()) {
    const name = Provider.name(provider)
    try {
      if (!available.includes(name)) throw new Error(`not in this build, which has ${available.join(", ")}`)
      const settings = sessionOptions(options.providers.slice(index))
      // Loads by path if the file is unchanged, so that the runtime finds external files.
      const session =
        model === undefined
          ? await InferenceSession.create(options.file, settings)
          : await InferenceSession.create(model, settings)
      return { session, provider: Provider.print(provider), refused }
    } catch (error) {
      reasons.add(text(error))
      refused.push(`execution provider ${Provider.print(provider)}: ${text(error)}`)
    }
  }
  // With only the CPU, or with equal reasons, the provider is not the cause.
  const [reason] = reasons
  const [only] = options.providers
  const isFile =
    reasons.size === 1 && (options.providers.length > 1 || (only !== undefined && Provider.name(only) === "cpu"))
  throw new Error(isFile && reason !== undefined ? reason : refused.join("; "))
}

/** Returns the modified file in memory; undefined if it is loaded unchanged. */
const changedFile = async (): Promise<Uint8Array | undefined> => {
  if (options.requiredInputs.length === 0) return undefined
  const RequiredInputs = await import("./RequiredInputs.ts")
  return RequiredInputs.make(FileCall.contentsOf(options.file, maxModelBytes), options.requiredInputs)
}

const sessionOptions = (providers: SessionOptions["providers"]): InferenceSession.SessionOptions => ({
  executionProviders: [...providers],
  intraOpNumThreads: options.intraOpThreads,
  interOpNumThreads: options.interOpThreads,
  executionMode: options.interOpThreads > 1 ? "parallel" : "sequential",
  graphOptimizationLevel: options.graphOptimization,
  enableCpuMemArena: options.memoryArena,
  logSeverityLevel: silent,
  extra: {
    session: {
      // External weights are in the file's folder, also for a modified file in memory.
      ...(options.requiredInputs.length > 0
        ? { model_external_initializers_file_folder_path: dirname(options.file) }
        : {}),
      // Spinning threads take the cores from the front end.
      ...(options.intraOpThreads > 1 ? { intra_op: { allow_spinning: "0" } } : {}),
    },
  },
})

/** The runtime's messages about an output whose shape is not that of the memory for it. */
const otherShape =
  /shape verification failed|pre-allocated output|invalid dimensions for output|Invalid rank for output/u

const text = (error: unknown): string => errorMessage(error).trim()

const cache = new Map<number, { readonly feeds: Tensors; readonly fetches: Tensors }>()

/**
 * The tensors of a slot with so many rows: views on the shared memory, from which the runtime reads and to which it
 * writes.
 */
const slotTensors = (slots: Slots.Layout, sequence: number, kind: number) => {
  const offset = Slots.slotOffset(slots, sequence)
  const key = kind * Slots.slotCount + (sequence & (Slots.slotCount - 1))
  let tensors = cache.get(key)
  if (tensors === undefined) {
    const isLinked = kind >= Slots.LINKED
    const rows = isLinked ? kind - Slots.LINKED : kind
    const at = ({ datatype, dims, offset: inSlot }: Slots.SlotRegion, slotOffset = offset): Tensor =>
      OrtTensor.onMemory(datatype, slots.batching ? [rows, ...dims] : dims, memory, slotOffset + inSlot)
    const other = Slots.slotOffset(slots, Slots.next(sequence))
    const feeds: Tensors = Object.fromEntries(slots.inputs.map((region) => [region.name, at(region)]))
    for (const { input, output } of isLinked ? slots.links : []) {
      const region = slots.inputs[input]
      if (region !== undefined) feeds[region.name] = at(output, other)
    }
    const fetches: Tensors = Object.fromEntries(slots.outputs.map((region) => [region.name, at(region)]))
    if (cache.size >= maxCached) cache.clear()
    cache.set(key, (tensors = { feeds, fetches }))
  }
  return tensors
}

/** Slots for dynamic shapes; empty for other models. */
const dynamicRuns =
  dynamic === undefined
    ? []
    : Array.from({ length: Slots.slotCount }, (_, slot) => new DynamicRun.DynamicRun(dynamic, memory, slot))

/**
 * Starts a run without the turn of the event loop that onnxruntime-node takes before each one. That turn lets other
 * work of the thread go first; this thread has none.
 */
const atOnce = <A>(run: () => Promise<A>): Promise<A> => {
  const { setImmediate } = globalThis
  globalThis.setImmediate = withoutTurn
  try {
    return run()
  } finally {
    globalThis.setImmediate = setImmediate
  }
}

/** Returned for callbacks that have been called already. */
const spent = setImmediate(() => {})

const withoutTurn: typeof setImmediate = Object.assign(
  <A extends ReadonlyArray<unknown>>(callback: (...args: A) => void, ...args: A) => {
    callback(...args)
    return spent
  },
  setImmediate,
)

const runGeneral = async (session: InferenceSession): Promise<BatchReply> => {
  const received: { message: GeneralInputs } | undefined = receiveMessageOnPort(port)
  if (received === undefined) throw new Error("no message came with the batch. This is a bug.")
  const feeds: Tensors = {}
  for (const [index, { name, datatype }] of inputs.entries()) {
    const tensor = received.message[index]
    if (tensor !== undefined) feeds[name] = OrtTensor.fromMessage(datatype, tensor)
  }
  return runFresh(session, feeds)
}

/** Runs into memory of the runtime, so that outputs may have any shape. */
const runFresh = async (session: InferenceSession, feeds: Tensors): Promise<BatchReply> => {
  const results = await atOnce(() =>
    session.run(
      feeds,
      outputs.map(({ name }) => name),
      { logSeverityLevel: silent },
    ),
  )
  return outputsOf(results)
}

const outputsOf = (results: Tensors): BatchReply => ({
  _tag: "Outputs",
  outputs: outputs.map(({ name }) => {
    const tensor = results[name]
    if (tensor === undefined) throw new Error(`the model returned no output '${name}'`)
    return OrtTensor.toMessage(tensor)
  }),
})

/**
 * Runs with outputs in the given memory. Returns undefined if an output has another shape than its memory. The runtime
 * does not report which one, so the caller runs again into the runtime's memory, and decoding names the output.
 */
const runInto = async (
  session: InferenceSession,
  feeds: Tensors,
  fetches: DynamicRun.Fetches,
): Promise<Tensors | undefined> => {
  try {
    return await atOnce(() => session.run(feeds, fetches, { logSeverityLevel: silent }))
  } catch (error) {
    if (otherShape.test(text(error))) return undefined
    throw error
  }
}

const reply = (outcome: BatchReply) => {
  const transferred =
    outcome._tag === "Outputs" ? outcome.outputs.flatMap(({ data }) => ("buffer" in data ? [data.buffer] : [])) : []
  port.postMessage(outcome, transferred)
}

const serve = async (session: InferenceSession) => {
  const control = Slots.control(memory)
  const durations = Slots.durations(memory)
  for (let sequence = 0; ;) {
    if (Atomics.load(control, Slots.HEAD) === sequence) {
      Atomics.wait(control, Slots.HEAD, sequence)
      continue
    }
    const kind = Atomics.load(control, Slots.kindWord(sequence))
    if (kind === Slots.STOP) return
    let outcomeLocation = Slots.IN_SLOT
    const startedAt = performance.now()
    try {
      const dynamicRun = kind === Slots.DYNAMIC ? dynamicRuns[sequence & (Slots.slotCount - 1)] : undefined
      if (dynamicRun !== undefined) {
        const { feeds, fetches } = dynamicRun.tensors()
        const results = await runInto(session, feeds, fetches)
        if (results === undefined || !dynamicRun.take(fetches, results)) {
          outcomeLocation = Slots.BY_MESSAGE
          reply(results === undefined ? await runFresh(session, feeds) : outputsOf(results))
        }
      } else if (kind === Slots.GENERAL || layout === undefined) {
        outcomeLocation = Slots.BY_MESSAGE
        reply(await runGeneral(session))
      } else {
        const { feeds, fetches } = slotTensors(layout, sequence, kind)
        if ((await runInto(session, feeds, fetches)) === undefined) {
          outcomeLocation = Slots.BY_MESSAGE
          reply(await runFresh(session, feeds))
        }
      }
    } catch (error) {
      outcomeLocation = Slots.BY_MESSAGE
      reply({ _tag: "Failed", message: text(error) })
    }
    durations[Slots.durationWord(sequence)] = (performance.now() - startedAt) * 1e6
    Atomics.store(control, Slots.outcomeWord(sequence), outcomeLocation)
    sequence = Slots.next(sequence)
    Atomics.store(control, Slots.DONE, sequence)
    Atomics.notify(control, Slots.DONE)
  }
}

const postLoadReply = (loading: LoadReply) => parentPort?.postMessage(loading, [])

const loaded = await load().catch((error: unknown) => {
  postLoadReply({ _tag: "LoadFailed", message: text(error) })
})
if (loaded !== undefined) {
  postLoadReply({ _tag: "Loaded", provider: loaded.provider, refused: loaded.refused })
  await serve(loaded.session)
  await loaded.session.release()
}
