/** Checks of this machine for a server: Node, processors, memory, default ports, ONNX Runtime. */
import { createServer } from "node:net"
import { arch, availableParallelism, platform, totalmem } from "node:os"
import * as Runtime from "@nereid/onnx/internal/Runtime"
import type { Finding } from "./Finding.ts"
import { type TestOutputs, isExpected, print, testInputs } from "./TestRequest.ts"

/** `needed` as in `engines` of a package: >=22.19. */
export const node = (version: string, needed: string): Finding => {
  const details = { version, needed }
  const message = `${version}, needed is ${needed}`
  return { name: "Node", status: isAtLeast(version, needed.replace(/^>=/, "")) ? "ok" : "failed", message, details }
}

const isAtLeast = (version: string, minimum: string): boolean => {
  const parts = (text: string) => text.split(".").map((part) => Number.parseInt(part, 10))
  const actual = parts(version)
  for (const [index, needed] of parts(minimum).entries()) {
    const difference = (actual[index] ?? 0) - needed
    if (difference !== 0) return difference > 0
  }
  return true
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
    if (reason !== undefined) busy.push(`${port} is taken (${reason}), choose another by --${flag}`)
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

/** Rejects where it cannot be loaded, or does not run. */
export const onnxRuntime = async (): Promise<Finding> => {
  const { version, providers, sum, difference } = await Runtime.addSub(testInputs.a, testInputs.b)
  const outputs: TestOutputs = { add: sum, sub: difference }
  const message = `${version}, built with ${providers.join(", ")}: ${print(outputs)}`
  const details = { version, providers, ...outputs }
  return { name: "ONNX Runtime", status: isExpected(outputs) ? "ok" : "failed", message, details }
}
