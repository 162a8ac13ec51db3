/** A Triton as a child process, on free ports, for as long as it is not disposed of. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { setImmediate } from "node:timers/promises"

export interface TritonServer extends AsyncDisposable {
  readonly http: number
  readonly grpc: number
  readonly metrics: number
  /** Its process group, with the processes of its models. */
  readonly group: number
  /** Returns the last 16 million characters of its log. */
  readonly log: () => string
}

/** Time for the models to load; each Python model is a process. */
const startTimeout = 180_000

/**
 * Starts a Triton; `prefix` is a command line that runs its own.
 * @throws Error with the end of its log if it does not start
 */
export const start = async (
  program: string,
  repository: string,
  more: ReadonlyArray<string>,
  prefix: ReadonlyArray<string> = [],
): Promise<TritonServer> => {
  const [http, grpc, metrics] = await Promise.all([freePort(), freePort(), freePort()])
  const flags = ["--exit-timeout-secs=5", "--trace-config=mode=triton", ...more]
  const ports = Object.entries({ http, grpc, metrics }).flatMap(([name, port]) => [
    `--${name}-port=${port}`,
    `--${name}-address=127.0.0.1`,
  ])
  // A group of its own, because the program may be a script that starts the server, and models are processes. With a
  // socket as stdin, shells that start Python would read their profile.
  const [command = "", ...args] = [...prefix, program, `--model-repository=${repository}`, ...ports, ...flags]
  const child = spawn(command, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  })
  let log = ""
  const started = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => end("has not started in time"), startTimeout)
    const end = (reason: string) => {
      clearTimeout(timer)
      reject(new Error(`Triton ${reason}:\n${problems(log)}`))
    }
    const add = (chunk: Buffer) => {
      log = (log + String(chunk)).slice(-16_000_000)
      if (!log.includes("Started HTTPService") || !log.includes("Started Metrics Service")) return
      clearTimeout(timer)
      resolve()
    }
    child.stdout.on("data", add)
    child.stderr.on("data", add)
    child.on("error", (error) => end(error.message))
    child.on("exit", (code) => end(`has ended with ${code}`))
  })
  const killNow = () => void kill(child)
  const exitNow = () => process.exit(1)
  // A group of its own gets no Ctrl-C of the terminal.
  process.once("exit", killNow).once("SIGINT", exitNow).once("SIGTERM", exitNow)
  const stop = async () => {
    process.off("exit", killNow).off("SIGINT", exitNow).off("SIGTERM", exitNow)
    if (kill(child)) await once(child, "exit")
  }
  try {
    await started
    await ready(http)
  } catch (error) {
    await stop()
    throw error
  }
  return { http, grpc, metrics, group: child.pid ?? 0, log: () => log, [Symbol.asyncDispose]: stop }
}

/** Whether there was a process to kill. */
const kill = ({ pid, exitCode, signalCode }: ChildProcess): boolean => {
  if (exitCode !== null || signalCode !== null || pid === undefined) return false
  process.kill(-pid, "SIGKILL")
  return true
}

/** The lines of a log that say what is wrong; its end if none does. */
const problems = (log: string): string => {
  const lines = log.split("\n").filter((line) => /^E\d|UNAVAILABLE|failed/.test(line))
  return lines.length === 0 ? log.slice(-4000) : lines.join("\n").slice(-4000)
}

/** Its ports open a moment after the line of the log. */
const ready = async (port: number): Promise<void> => {
  for (const end = performance.now() + startTimeout; performance.now() < end;) {
    const response = await fetch(`http://127.0.0.1:${port}/v2/health/live`).catch(() => undefined)
    if (response?.ok === true) return
    await setImmediate()
  }
  throw new Error("Triton is not live in time")
}

const freePort = async (): Promise<number> => {
  const server = createServer()
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}
