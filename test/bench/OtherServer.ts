/**
 * Servers that `npm run bench -- --beside <name>` measures beside ours. They are no dependency of this repository: a
 * machine without one of them gets the reason.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as TritonServer from "../triton/TritonServer.ts"
import * as Child from "./Child.ts"
import { onCore } from "./Cores.ts"
import * as ProcessGroup from "./ProcessGroup.ts"
import type { Ports } from "./Reporter.ts"

export interface OtherServer {
  readonly ports: Ports
  /** CPU time of all its processes, in microseconds. */
  readonly cpu: () => Promise<number>
  /** Why it cannot answer requests of this model; undefined if it can. */
  readonly missing: (model: string) => Promise<string | undefined>
  readonly stop: () => Promise<void>
}

export interface OtherKind {
  /** The program, for the page. */
  readonly description: string
  readonly speaksGrpc: boolean
  /** Whether it has the binary tensor extension. */
  readonly speaksBinary: boolean
  /** Starts it on this core; why it cannot be started, if it cannot. */
  readonly start: (core: number | undefined) => Promise<OtherServer | string>
}

const here = import.meta.dirname
const complete = async () => undefined

/**
 * A copy of the repository whose queues refuse requests that have waited for so many milliseconds, as Triton's pages
 * advise for a server with too much to do.
 */
const withQueueTimeout = (milliseconds: number): string => {
  const root = mkdtempSync(join(tmpdir(), "nereid-triton-"))
  process.once("exit", () => rmSync(root, { recursive: true }))
  const copy = join(root, "test", "bench", "triton")
  cpSync(join(here, "triton"), copy, { recursive: true })
  // Where the models look for their files.
  symlinkSync(join(here, "..", "..", "examples"), join(root, "examples"))
  const timeout = `default_timeout_microseconds: ${Math.round(1000 * milliseconds)}`
  const policy = `default_queue_policy { timeout_action: REJECT ${timeout} }`
  for (const model of readdirSync(copy)) {
    const file = join(copy, model, "config.pbtxt")
    const text = readFileSync(file, "utf8")
    writeFileSync(file, text.replace(/dynamic_batching \{ *\}/, `dynamic_batching { ${policy} }`))
  }
  return copy
}

/** Triton, whose queues refuse requests after `queueTimeout` milliseconds; by default they never do. */
export const triton = (queueTimeout?: number): OtherKind => ({
  description:
    "Triton 2.51 with its Python backend: numpy for `add_sub` and the picture, ONNX Runtime for the networks, one run for each batch",
  speaksGrpc: true,
  speaksBinary: true,
  start: async (core) => {
    const program = process.env["TRITON_SERVER"] ?? ""
    if (program === "") return "the variable TRITON_SERVER is not the path of a tritonserver"
    const server = await TritonServer.start(
      program,
      queueTimeout === undefined ? join(here, "triton") : withQueueTimeout(queueTimeout),
      ["--exit-on-error=false", "--allow-metrics=true"],
      onCore(core, []),
    )
    const { http, grpc, group } = server
    return {
      ports: { http, grpc },
      cpu: async () => ProcessGroup.cpu(group),
      missing: async (model) => {
        const { ok } = await fetch(`http://127.0.0.1:${http}/v2/models/${model}/ready`)
        return ok ? undefined : "its Python lacks numpy, onnxruntime or tokenizers"
      },
      stop: async () => server[Symbol.asyncDispose](),
    }
  },
})

const fastify: OtherKind = {
  description: "fastify with onnxruntime-node on the thread of its event loop, one run for each request",
  speaksGrpc: false,
  speaksBinary: false,
  start: async (core) => {
    try {
      import.meta.resolve("fastify")
    } catch {
      return "fastify is not installed; `npm install --no-save fastify` installs it"
    }
    const child = await Child.start(new URL("./fastify.ts", import.meta.url), core)
    return {
      ports: child.ports,
      cpu: async () => (await child.call("report")).cpu,
      missing: complete,
      stop: () => child.stop(),
    }
  },
}

const fastapi: OtherKind = {
  description: "FastAPI and uvicorn with ONNX Runtime in Python, one run for each request",
  speaksGrpc: false,
  speaksBinary: false,
  start: async (core) => {
    const [command = "", ...args] = onCore(core, [process.env["PYTHON"] ?? "python3", join(here, "fastapi_server.py")])
    const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] })
    let errors = ""
    child.stderr.on("data", (chunk: Buffer) => (errors += String(chunk)))
    const ended = once(child, "exit")
    const port = once(createInterface(child.stdout), "line").then(([line]: Array<unknown>) => Number(line))
    const started = await Promise.race([
      port,
      ended.then(
        () => errors.trim().split("\n").at(-1) ?? "",
        ({ message }: Error) => message,
      ),
    ])
    if (typeof started === "string") {
      return `the Python of the variable PYTHON lacks fastapi, uvicorn, onnxruntime, numpy or tokenizers (${started})`
    }
    return {
      ports: { grpc: 0, http: started },
      cpu: async () => ProcessGroup.cpu(child.pid ?? 0),
      missing: complete,
      stop: async () => {
        child.kill()
        await ended
      },
    }
  },
}

export const kinds = { triton: triton(), fastify, fastapi } as const satisfies Record<string, OtherKind>

export type Name = keyof typeof kinds

export const isName = (name: string): name is Name => Object.hasOwn(kinds, name)
