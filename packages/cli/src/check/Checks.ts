/**
 * Runs the checks of `nereid check`. Effect is imported only with the server, because the other checks also run on a
 * Node that is too old for it.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { isSupported } from "create-nereid/internal/NodeVersion"
import type { CheckedModels } from "./CheckedModels.ts"
import type { Finding } from "./Finding.ts"
import * as Machine from "./Machine.ts"

/** Timeout of each check, in milliseconds. */
const timeout = 20_000

/** Default ports of `nereid serve`, by flag. */
const ports = { "http-port": 8000, "grpc-port": 8001, "metrics-port": 8002 }

/** `neededNode` is a range as in `engines` of a package. Never rejects. */
export const all = async (
  neededNode: string,
  models: CheckedModels = { repositories: [], backendDirectory: undefined },
): Promise<ReadonlyArray<Finding>> => {
  const { version } = process
  const supported = isSupported(version.slice(1), neededNode)
  return [
    Machine.node(version.slice(1), neededNode, process.execPath),
    Machine.machine(),
    ...(await attempt("ports", async () => [await Machine.ports(ports)])),
    ...(await attempt("ONNX Runtime", async () => [await Machine.onnxRuntime()])),
    ...(supported ? await attempt("Python", () => python(models)) : []),
    ...(supported ? await attempt("server", server) : [untried]),
  ]
}

const python = async (models: CheckedModels) => (await import("./PythonCheck.ts")).check(models)

const server = async () => (await import("./Loopback.ts")).check(timeout / 2)

const untried: Finding = { name: "server", status: "note", message: "not checked, because it needs a newer Node" }

/** Runs a check. A rejection or a timeout is a failed finding. */
export const attempt = async (
  name: string,
  run: () => Promise<ReadonlyArray<Finding>>,
  limit = timeout,
): Promise<ReadonlyArray<Finding>> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result within ${limit / 1000} s`)), limit)
  })
  try {
    return await Promise.race([run(), late])
  } catch (error) {
    return [{ name, status: "failed", message: errorMessage(error) }]
  } finally {
    clearTimeout(timer)
  }
}
