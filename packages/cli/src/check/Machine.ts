/** Checks of this machine for a server: Node, processors, memory, default ports, ONNX Runtime. */
import { createServer } from "node:net"
import { arch, availableParallelism, platform, totalmem } from "node:os"
import { isSupported } from "create-nereid/internal/NodeVersion"
import type { Finding } from "./Finding.ts"
import * as NodeVersion from "./NodeVersion.ts"
import { type TestOutputs, isExpected, print, testInputs } from "./TestRequest.ts"

/** `needed` is a range as in `engines` of a package; `path` is the executable that runs. */
export const node = (version: string, needed: string, path: string): Finding => {
  const details = { version, needed, path }
  const message = `${version}, required ${needed}`
  if (isSupported(version, needed)) return { name: "Node", status: "ok", message, details }
  return { name: "Node", status: "failed", message: `${message}: ${path} is too old. ${NodeVersion.remedy}`, details }
}

/** Reports the resources that the process may use; a container may limit them. */
export const machine = (): Finding => {
  const constrained = process.constrainedMemory()
  const memory = constrained > 0 && constrained < totalmem() ? constrained : totalmem()
  const details = { platform: platform(), arch: arch(), cores: availableParallelism(), memory }
  const { cores } = details
  const message = `${details.platform} ${details.arch}, ${cores} ${cores === 1 ? "core" : "cores"}, ${gibibytes(memory)}`
  return { name: "machine", status: "ok", message, details }
}

const gibibytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB of memory`

/** Checks whether these ports are free. A port in use is a warning, because it may be the user's server. */
export const ports = async (portsByFlag: Readonly<Record<string, number>>): Promise<Finding> => {
  const busy: Array<string> = []
  const details: Record<string, string> = {}
  for (const [flag, port] of Object.entries(portsByFlag)) {
    const reason = await refusal(port)
    details[port] = reason ?? "free"
    if (reason !== undefined) busy.push(`port ${port} is in use (${reason}): choose another with --${flag}`)
  }
  if (busy.length > 0) return { name: "ports", status: "warning", message: busy.join("; "), details }
  return { name: "ports", status: "ok", message: `${Object.values(portsByFlag).join(", ")} are free`, details }
}

/** Returns the error of listening on a port; undefined if the port is free. */
const refusal = (port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen(port, "0.0.0.0", () => server.close(() => resolve(undefined)))
  })

/** Rejects if ONNX Runtime is installed and cannot be loaded, or does not run. */
export const onnxRuntime = async (): Promise<Finding> => {
  // Imported lazily, so that a Node that cannot load it still runs the other checks.
  const [Runtime, { RuntimeNotInstalled }] = await Promise.all([
    import("@nereid/onnx/internal/Runtime"),
    import("@nereid/onnx/internal/RuntimePackage"),
  ])
  try {
    const { version, providers, sum, difference } = await Runtime.addSub(testInputs.a, testInputs.b)
    const outputs: TestOutputs = { add: sum, sub: difference }
    const message = `${version}, built with ${providers.join(", ")}: ${print(outputs)}`
    const details = { version, providers, ...outputs }
    return { name: "ONNX Runtime", status: isExpected(outputs) ? "ok" : "failed", message, details }
  } catch (error) {
    if (!(error instanceof RuntimeNotInstalled)) throw error
    const message = `not installed. Only ONNX models need it: ${error.remedy}`
    return { name: "ONNX Runtime", status: "note", message, details: { installed: false } }
  }
}
