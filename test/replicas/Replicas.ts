/** Three replicas, each a process, and a load of calls at a constant rate. */
import { Program } from "../Program.ts"

export interface Replica {
  readonly program: Program
  readonly ports: { readonly http: number; readonly grpc: number }
}

export const start = async (http = 0, grpc = 0): Promise<Replica> => {
  const program = new Program(["test/replicas/server.ts", String(http), String(grpc)])
  const [, ...ports] = await program.match(/ports (\d+) (\d+)/)
  const [first, second] = ports.map(Number)
  return { program, ports: { http: first ?? 0, grpc: second ?? 0 } }
}

export class Replicas implements AsyncDisposable {
  readonly #replicas: Array<Replica>

  private constructor(replicas: ReadonlyArray<Replica>) {
    this.#replicas = [...replicas]
  }

  static async start(count = 3): Promise<Replicas> {
    return new Replicas(await Promise.all(Array.from({ length: count }, () => start())))
  }

  urls(protocol: "http" | "grpc"): ReadonlyArray<string> {
    return this.#replicas.map(({ ports }) => `${protocol}://127.0.0.1:${ports[protocol]}`)
  }

  at(index: number): Replica {
    const replica = this.#replicas[index]
    if (replica === undefined) throw new Error(`there is no replica ${index}`)
    return replica
  }

  get pids(): ReadonlyArray<number> {
    return this.#replicas.map(({ program }) => program.pid)
  }

  signal(index: number, signal: NodeJS.Signals): void {
    this.at(index).program.signal(signal)
  }

  /** Starts a replica that has ended again, on its ports. */
  async restart(index: number): Promise<void> {
    const { program, ports } = this.at(index)
    await program.ended
    this.#replicas[index] = await start(ports.http, ports.grpc)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { program } of this.#replicas) program.signal("SIGKILL")
    await Promise.all(this.#replicas.map(({ program }) => program.ended))
  }
}

/** Time for which a load sends the calls of a standstill after it, in seconds. */
const longestLag = 0.2

/** One call of a load. */
interface Sample {
  /** Milliseconds since the load began. */
  readonly at: number
  readonly millis: number
  /** The process that has answered; undefined for a failure. */
  readonly process: number | undefined
  readonly error: string | undefined
}

export class Load {
  readonly #call: () => Promise<{ readonly PROCESS: number }>
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  readonly #open = new Set<Promise<void>>()
  readonly samples: Array<Sample> = []
  /** Calls per second. */
  readonly rate: number
  #sent = 0
  /** Calls that were not sent, because this process stood still when they were due. */
  #skipped = 0

  /** Sends calls at a rate per second, whether or not earlier ones have ended. */
  constructor(rate: number, call: () => Promise<{ readonly PROCESS: number }>) {
    this.#call = call
    this.rate = rate
    this.#timer = setInterval(() => {
      const due = (this.now / 1000) * rate - this.#skipped
      // A burst after a standstill of this process would be another load.
      this.#skipped += Math.max(0, Math.floor(due - this.#sent - rate * longestLag))
      while (this.#sent < (this.now / 1000) * rate - this.#skipped) this.#send()
    }, 1)
  }

  get now(): number {
    return performance.now() - this.#startedAt
  }

  /** Lets the load go on. */
  async run(millis: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(resolve, millis)
    await promise
  }

  /** Calls that began in a time. */
  between(from: number, to: number): Summary {
    return new Summary(this.samples.filter(({ at }) => at >= from && at < to))
  }

  /** Waits for the calls under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#open)
  }

  /** Sends no more, and waits for the calls under way. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.settled()
  }

  #send(): void {
    this.#sent += 1
    const at = this.now
    const record = (process: number | undefined, error: string | undefined) =>
      void this.samples.push({ at, millis: this.now - at, process, error })
    const open = this.#call()
      .then(
        ({ PROCESS }) => record(PROCESS, undefined),
        (error: Error) => record(undefined, `${error.name}: ${error.message}`),
      )
      .finally(() => this.#open.delete(open))
    this.#open.add(open)
  }
}

export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? Number.NaN

export class Summary {
  readonly #samples: ReadonlyArray<Sample>

  constructor(samples: ReadonlyArray<Sample>) {
    this.#samples = samples
  }

  get count(): number {
    return this.#samples.length
  }

  /** Messages of the calls that failed. */
  get errors(): ReadonlyArray<string> {
    return this.#samples.flatMap(({ error }) => (error === undefined ? [] : [error]))
  }

  percentile(percent: number): number {
    const times = this.#samples.map(({ millis }) => millis).toSorted((one, other) => one - other)
    return times[Math.min(times.length - 1, Math.floor((times.length * percent) / 100))] ?? Number.NaN
  }

  /** Share of each process in the calls that were answered. */
  shares(pids: ReadonlyArray<number>): ReadonlyArray<number> {
    const answered = this.#samples.filter(({ process }) => process !== undefined)
    return pids.map((pid) => answered.filter(({ process }) => process === pid).length / answered.length)
  }

  /** As a line of a report. */
  line(pids: ReadonlyArray<number>): string {
    const percentiles = [50, 99].map((percent) => `p${percent} ${this.percentile(percent).toFixed(1)} ms`)
    const shares = this.shares(pids).map((share) => `${(share * 100).toFixed(1)} %`)
    return [`${this.count} calls`, `${this.errors.length} failed`, ...percentiles, `shares ${shares.join(" ")}`].join(
      ", ",
    )
  }
}
