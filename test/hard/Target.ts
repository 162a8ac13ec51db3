/** A server in a process of its own, and what can be seen of it from outside. */
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { command, Program } from "../Program.ts"

/**
 * Settings that keep caches of the process from hiding leaks: two arenas of the C library instead of one for each
 * thread, no pool of empty pages, and a full collection before each measurement.
 */
const environment = { MALLOC_ARENA_MAX: "2" }
const node = ["--no-memory-pool", "--expose-gc", "--import", "./test/fixtures/programs/collecting.ts"]

export class Target implements AsyncDisposable {
  readonly program: Program
  readonly http: number
  readonly grpc: number
  readonly metrics: number
  /** Removed with the server. */
  readonly folder: string | undefined
  #collections = 0

  constructor(
    program: Program,
    ports: { readonly http: number; readonly grpc: number; readonly metrics: number },
    folder?: string,
  ) {
    this.program = program
    this.folder = folder
    this.http = ports.http
    this.grpc = ports.grpc
    this.metrics = ports.metrics
  }

  /** `nereid serve` of a module with models, with more flags. `folder`: a folder that is removed after it. */
  static async serve(
    flags: ReadonlyArray<string> = [],
    variables: NodeJS.ProcessEnv = {},
    folder?: string,
    models = "test/hard/models.ts",
  ): Promise<Target> {
    const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    const program = Target.program([command, "serve", models, ...ports, ...flags], variables)
    const portOf = async (name: string) => Number((await program.match(new RegExp(`${name} at [^:]+:(\\d+)`)))[1])
    const http = await portOf("HTTPService")
    const grpc = await portOf("GRPCInferenceService")
    const metrics = await portOf("Metrics Service")
    return new Target(program, { http, grpc, metrics }, folder)
  }

  static program(args: ReadonlyArray<string>, variables: NodeJS.ProcessEnv = {}): Program {
    return new Program([...node, ...args], { ...environment, ...variables })
  }

  get url(): string {
    return `http://localhost:${this.http}/v2`
  }

  /** Resident memory, in bytes. */
  get resident(): number {
    return Number(readFileSync(`/proc/${this.program.pid}/statm`, "utf8").split(" ")[1]) * 4096
  }

  get openFiles(): number {
    return readdirSync(`/proc/${this.program.pid}/fd`).length
  }

  /** Memory without garbage, in bytes. */
  async collected(): Promise<{ readonly resident: number; readonly heap: number; readonly buffers: number }> {
    this.program.signal("SIGUSR2")
    this.#collections += 1
    const pattern = new RegExp(`collected ${this.#collections}: (\\d+) (\\d+) (\\d+)\n`)
    const [, resident, heap, buffers] = await this.program.match(pattern)
    return { resident: Number(resident), heap: Number(heap), buffers: Number(buffers) }
  }

  /** Actions of a limit, from the metrics. */
  async actions(limit: string): Promise<number> {
    const text = await (await fetch(`http://localhost:${this.metrics}/metrics`)).text()
    return Number(new RegExp(`nereid_limit_actions_total\\{limit="${limit}"\\} (\\d+)`).exec(text)?.[1] ?? 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program[Symbol.asyncDispose]()
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true })
  }
}
