/** A Triton as a child process, on free ports, for as long as it is not disposed of. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { setImmediate } from "node:timers/promises"

export interface TritonServer extends AsyncDisposable {
  readonly http: number
  readonly grpc: number
}

/** Time for the models to load; each Python model is a process. */
const startTimeout = 180_000

/** @throws Error with the end of its log if it does not start */
export const start = async (program: string, repository: string): Promise<TritonServer> => {
  const [http, grpc] = await Promise.all([freePort(), freePort()])
  const flags = ["--allow-metrics=false", "--exit-timeout-secs=5", "--trace-config=mode=triton"]
  const ports = [`--http-port=${http}`, `--grpc-port=${grpc}`, "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
  // A group of its own, because the program may be a script that starts the server, and models are processes.
  const child = spawn(program, [`--model-repository=${repository}`, ...ports, ...flags], { detached: true })
  let log = ""
  const started = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => end("has not started in time"), startTimeout)
    const end = (reason: string) => {
      clearTimeout(timer)
      reject(new Error(`Triton ${reason}:\n${log.slice(-4000)}`))
    }
    const add = (chunk: Buffer) => {
      log += String(chunk)
      if (!log.includes("Started HTTPService")) return
      clearTimeout(timer)
      resolve()
    }
    child.stdout.on("data", add)
    child.stderr.on("data", add)
    child.on("error", (error) => end(error.message))
    child.on("exit", (code) => end(`has ended with ${code}`))
  })
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    process.kill(-child.pid, "SIGKILL")
    await once(child, "exit")
  }
  try {
    await started
    await ready(http)
  } catch (error) {
    await stop()
    throw error
  }
  return { http, grpc, [Symbol.asyncDispose]: stop }
}

/** Its ports open a moment after the line of the log. */
const ready = async (port: number): Promise<void> => {
  for (const end = performance.now() + startTimeout; performance.now() < end;) {
    const response = await fetch(`http://127.0.0.1:${port}/v2/health/ready`).catch(() => undefined)
    if (response?.ok === true) return
    await setImmediate()
  }
  throw new Error("Triton is not ready in time")
}

const freePort = async (): Promise<number> => {
  const server = createServer()
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}
