/**
 * The baseline of ONNX Runtime, run as a child: batches of digits, one behind the other, by bare onnxruntime-node in a
 * worker thread, with the session that our own instances have. Nothing is received, queued, copied or answered.
 */
import { once } from "node:events"
import { createHistogram } from "node:perf_hooks"
import { fileURLToPath } from "node:url"
import { isMainThread, parentPort, Worker } from "node:worker_threads"
import { InferenceSession, Tensor } from "onnxruntime-node"
import type { Measured } from "./Measured.ts"
import { report, type Work } from "./Reporter.ts"

const file = fileURLToPath(new URL("../../examples/digits/digits.onnx", import.meta.url))

/** Rows per second; the times are those of batches. */
const run = async (session: InferenceSession, { rows, seconds }: Work): Promise<Measured> => {
  const [input = ""] = session.inputNames
  const feeds = [Math.floor(rows), Math.ceil(rows)].map((count) => ({
    [input]: new Tensor("float32", new Float32Array(count * 28 * 28), [count, 1, 28, 28]),
  }))
  const latencies = createHistogram()
  let [batches, done] = [0, 0]
  const started = performance.now()
  let now = started
  while (now < started + seconds * 1000) {
    batches += 1
    // Of the two sizes next to the mean, as many each as make it.
    const count = Math.round(batches * rows) - done
    const before = now
    await session.run(feeds[count === Math.floor(rows) ? 0 : 1] ?? {})
    now = performance.now()
    done += count
    latencies.record(Math.max(1, Math.round((now - before) * 1e6)))
  }
  return {
    requests: done,
    perSecond: (done / (now - started)) * 1000,
    p50: latencies.percentile(50) / 1e6,
    p99: latencies.percentile(99) / 1e6,
    p999: latencies.percentile(99.9) / 1e6,
    errors: [],
  }
}

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url))
  await once(worker, "message")
  report({
    run: async (work) => {
      worker.postMessage(work, [])
      const [measured] = await once(worker, "message")
      return measured
    },
  })
} else {
  const session = await InferenceSession.create(file, {
    executionProviders: ["cpu"],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
  })
  parentPort?.on("message", async (work: Work) => parentPort?.postMessage(await run(session, work), []))
  parentPort?.postMessage("ready", [])
}
