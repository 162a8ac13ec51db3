/** One row of the table: a request at a concurrency, asked of the server and of the bare echo in turns. */
import type { Child } from "./Child.ts"
import * as GrpcLoad from "./GrpcLoad.ts"
import * as HttpLoad from "./HttpLoad.ts"
import * as Load from "./Load.ts"
import { echoed, type Request } from "./Request.ts"

interface Figures {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of the serving process, all its threads, per request. */
  readonly cpu: number
  /** Share of the time that the load itself was busy: near 1 it, and not the server, was the limit. */
  readonly load: number
}

export interface Comparison {
  readonly request: Request
  readonly concurrency: number
  /** Medians of the rounds. */
  readonly server: Figures
  readonly bare: Figures
  readonly errors: ReadonlyArray<string>
}

export interface Servers {
  readonly server: Child
  readonly echo: Child
}

export interface Durations {
  readonly rounds: number
  /** Per round and server; before the first round each is warmed up for half of it, at most a second. */
  readonly seconds: number
}

export const compare = async (
  { server, echo }: Servers,
  request: Request,
  replyBytes: number,
  concurrency: number,
  { rounds, seconds }: Durations,
): Promise<Comparison> => {
  const loads = request.protocol === "gRPC" ? GrpcLoad : HttpLoad
  const port = (child: Child) => (request.protocol === "gRPC" ? child.ports.grpc : child.ports.http)
  const sides = [
    { child: server, target: loads.target(port(server), request, replyBytes), figures: new Array<Figures>() },
    {
      child: echo,
      target: loads.target(port(echo), echoed(request, replyBytes), replyBytes),
      figures: new Array<Figures>(),
    },
  ] as const

  const errors: Array<string> = []
  for (const { target } of sides) errors.push(...(await Load.run(target, concurrency, Math.min(1, seconds / 2))).errors)
  for (let round = 0; round < rounds; round++) {
    for (const { child, target, figures } of sides) {
      const before = await child.ask("report")
      const own = process.threadCpuUsage()
      const measured = await Load.run(target, concurrency, seconds)
      const { user, system } = process.threadCpuUsage(own)
      const after = await child.ask("report")
      const cpu = (after.cpu - before.cpu) / measured.requests
      figures.push({ ...measured, cpu, load: (user + system) / 1e6 / seconds })
      errors.push(...measured.errors)
    }
  }
  return { request, concurrency, server: medians(sides[0].figures), bare: medians(sides[1].figures), errors }
}

const medians = (rounds: ReadonlyArray<Figures>): Figures => {
  const of = (figure: keyof Figures) => median(rounds.map((round) => round[figure]))
  return { perSecond: of("perSecond"), p50: of("p50"), p99: of("p99"), cpu: of("cpu"), load: of("load") }
}

/** The upper one of an even number. */
const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN
