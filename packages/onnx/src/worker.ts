/**
 * Entry of the worker thread of one instance. It imports ONNX Runtime before session.ts, which needs it, so that a
 * missing runtime fails the load with a clear reason. The module does not import Effect, which would add to the start
 * time of every worker.
 */
import { parentPort } from "node:worker_threads"
import * as RuntimePackage from "./RuntimePackage.ts"
import type { LoadReply } from "./SessionProtocol.ts"

const fail = (message: string) => parentPort?.postMessage({ _tag: "LoadFailed", message } satisfies LoadReply, [])

const problem = await RuntimePackage.load().then(
  () => undefined,
  (error: Error) => error.message,
)
if (problem === undefined) await import("./session.ts")
else fail(problem)
