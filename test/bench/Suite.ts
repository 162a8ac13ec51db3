/**
 * The benchmark cases: the measured side, its baseline and its target. Each case starts its processes. Comparison.ts
 * compares them; Results.ts and Page.ts format the results.
 */
import * as RequestLoad from "./RequestLoad.ts"
import type { Child } from "./Child.ts"
import { compare } from "./Comparison.ts"
import type { Bench, Case, Program } from "./Case.ts"
import { cost, delay, type Judge, occupation, rate } from "./Judges.ts"
import type { Delay } from "./models.ts"
import * as Memory from "./Memory.ts"
import * as Request from "./Request.ts"
import { saturate } from "./Saturation.ts"
import * as SequenceLoad from "./SequenceLoad.ts"
import * as Side from "./Side.ts"
import * as Waiting from "./Waiting.ts"

/** A request to our server, beside what `baseline` makes of it. */
const served = (
  name: string,
  description: string,
  baseline: string,
  target: string,
  load: RequestLoad.RequestLoad,
  other: (bench: Bench, load: RequestLoad.RequestLoad, replyLength: number) => Promise<Side.Side>,
  judge: Judge,
): Case => ({
  name,
  description,
  baseline,
  target,
  run: async (bench) => {
    const server = await bench.start("server")
    const replyLength = await RequestLoad.replyLength(server, load)
    const nereid = side(server, load, replyLength)
    return judge(await compare(name, nereid, await other(bench, load, replyLength), bench.settings))
  },
})

const side = (child: Child, load: RequestLoad.RequestLoad, replyLength: number): Side.Side =>
  Side.server(child, RequestLoad.target(child, load, replyLength), load.connections, load.concurrency)

/** A server that answers a body of the given length with `replyLength` bytes. */
const echo = async (bench: Bench, load: RequestLoad.RequestLoad, replyLength: number) =>
  side(await bench.start("echo"), RequestLoad.echoed(load, replyLength), replyLength)

/** A server that answers the request itself. */
const handler = (program: Program) => async (bench: Bench, load: RequestLoad.RequestLoad) => {
  const child = await bench.start(program)
  return side(child, load, await RequestLoad.replyLength(child, load))
}

/**
 * Rows per second of a network on both sides; the baseline gets the batches that our server made in the round before.
 */
const digits = (name: string, description: string, place: "server" | "both"): Case => ({
  name,
  description,
  baseline: "the same batches by bare onnxruntime-node in a worker",
  target: "≥ 0.75",
  run: async (bench) => {
    const server = await bench.start("server", place)
    const session = await bench.start("session", place)
    const load = RequestLoad.unary("digits", 64)
    const nereid = side(server, load, await RequestLoad.replyLength(server, load))
    let rows = 1
    const counted = async () => (await server.call("report")).models["digits"] ?? { inferences: 0, executions: 0 }
    const run = async (seconds: number) => {
      const before = await counted()
      const measured = await nereid.run(seconds)
      const after = await counted()
      rows = (after.inferences - before.inferences) / (after.executions - before.executions)
      return measured
    }
    const bare = Side.worker(session, () => ({ concurrency: 1, port: 0, rows }))
    const result = rate(0.75)(await compare(name, { ...nereid, run }, bare, bench.settings))
    return { ...result, lines: [...result.lines, `batches of ${rows.toFixed(1)}`] }
  },
})

const sequence: Case = {
  name: "sequence",
  description: "CPU time per request of sequences with a state tensor: gRPC unary add_sub, 64 in flight",
  baseline: "the same model without sequences",
  target: "≤ 1.15",
  run: async (bench) => {
    const load = RequestLoad.unary("add_sub", 64)
    const [server, other] = [await bench.start("server"), await bench.start("server")]
    const stateless = side(other, load, await RequestLoad.replyLength(other, load))
    return SequenceLoad.within(server, load, async (nereid) =>
      cost(1.15)(await compare("sequence", nereid, stateless, bench.settings)),
    )
  },
}

const client: Case = {
  name: "client",
  description: "our client: gRPC add_sub, 16 in flight",
  baseline: "node:http2 and protobuf-es",
  target: "≥ 0.85",
  run: async (bench) => {
    const replyServer = await bench.start("fixed-replies")
    const work = () => ({ concurrency: 16, port: replyServer.ports.grpc, rows: 0 })
    const nereid = Side.worker(await bench.start("client", "load"), work, replyServer)
    const raw = Side.worker(await bench.start("raw-client", "load"), work, replyServer)
    return rate(0.85)(await compare("client", nereid, raw, bench.settings))
  },
}

const loop: Case = {
  name: "loop",
  description: "event-loop delay, p99, with digits saturated by 64 gRPC clients",
  baseline: "–",
  target: "< 20 ms",
  run: async (bench) => {
    const server = await bench.start("server")
    const load = RequestLoad.unary("digits", 64)
    const { settings } = bench
    const seconds = settings.seconds * settings.rounds
    const { delay, perSecond, executions, inferences, errors } = await saturate(server, "digits", load, seconds)
    return {
      lines: [`${perSecond.toFixed(0)} /s`, `batches of ${(inferences / executions).toFixed(1)}`],
      reached: `${delay.toFixed(1)} ms`,
      met: delay < 20,
      cpu: "",
      latency: "",
      busy: "",
      other: "",
      errors,
      notes: [],
    }
  },
}

const memory: Case = {
  name: "memory",
  description: "memory per idle connection and per queued small request",
  baseline: "bare node:http2 and node:http",
  target: "reported",
  run: async (bench) => {
    const [server, bare] = [
      await bench.start("server", "server", ["--expose-gc"]),
      await bench.start("echo", "server", ["--expose-gc"]),
    ]
    const { lines, errors } = await Memory.measure(server, bare, bench.settings.seconds >= 1)
    return { lines, reached: "", met: undefined, cpu: "", latency: "", busy: "", other: "", errors, notes: [] }
  },
}

const waiting = (delay: Delay): Case => ({
  name: `waiting-${delay}`,
  description: `a batch that waits for its delay of ${delay} ms: share of a core, gRPC unary, 150 requests/s`,
  baseline: "the same model without a delay",
  target: "≤ +2 %",
  run: async (bench) => {
    const servers = [await bench.start("server"), await bench.start("server")] as const
    return occupation(2)(await Waiting.measure(servers, delay, bench.settings))
  },
})

/** Tokens of a stream. */
const streamed = 100

const httpStream = served(
  "http-stream",
  `streams of ${streamed} tokens as server-sent events, 64 connections`,
  "node:http, one write for each token",
  "–",
  RequestLoad.http(Request.events(streamed), 64),
  handler("events"),
  rate(),
)

const pipeline = (callers: number, min?: number) =>
  served(
    `pipeline-${callers}`,
    `a text through three models of examples/sentiment, HTTP JSON, ${callers} ${callers === 1 ? "connection" : "connections"}`,
    "node:http, the same tokenizer, one run of onnxruntime-node for each text",
    min === undefined ? "–" : `≥ ${min}`,
    RequestLoad.texts(callers),
    handler("pipeline"),
    rate(min),
  )

const noTarget = "–"
const bareHttp = "bare node:http that reads and writes as many bytes"
const bareHttp2 = "bare node:http2 that answers as many bytes"

export const cases: ReadonlyArray<Case> = [
  served(
    "grpc-small",
    "gRPC unary, add_sub 2 x FP32[1,16], 64 in flight on 4 connections",
    bareHttp2,
    "≥ 0.75",
    RequestLoad.unary("add_sub", 64),
    echo,
    rate(0.75),
  ),
  served(
    "grpc-js",
    "the same",
    "grpc-js with the same handler",
    "≥ 1.4",
    RequestLoad.unary("add_sub", 64),
    handler("grpc-js"),
    rate(1.4),
  ),
  served(
    "grpc-stream",
    "the same message on 4 gRPC streams, 64 in flight",
    "grpc-js with the same handler",
    "≥ 2.5",
    RequestLoad.stream("add_sub", 64),
    handler("grpc-js"),
    rate(2.5),
  ),
  served(
    "grpc-large",
    "gRPC unary, FP32[1,3,224,224] in, one value out, 16 in flight on 4 connections",
    "bare node:http2 with large windows, one copy",
    "≥ 0.8",
    RequestLoad.unary("glance", 16),
    echo,
    rate(0.8),
  ),
  served(
    "grpc-large-echo",
    "gRPC unary, FP32[1,3,224,224] in and out, 16 in flight on 4 connections",
    "bare node:http2 with large windows, one copy",
    "≥ 0.8",
    RequestLoad.unary("mirror", 16),
    echo,
    rate(0.8),
  ),
  served(
    "http-json",
    "HTTP JSON, add_sub, 32 connections",
    "bare node:http, JSON.parse, the same handler, JSON.stringify",
    "≥ 0.75",
    RequestLoad.http(Request.json("add_sub"), 32),
    handler("json"),
    rate(0.75),
  ),
  served(
    "http-large",
    "HTTP binary, FP32[1,3,224,224] in and out, 8 connections",
    bareHttp,
    "≥ 0.8",
    RequestLoad.http(Request.binary("mirror"), 8),
    echo,
    rate(0.8),
  ),
  served(
    "http-large-in",
    "HTTP binary, FP32[1,3,224,224] in, one value out, 8 connections",
    bareHttp,
    "≥ 0.8",
    RequestLoad.http(Request.binary("glance"), 8),
    echo,
    rate(0.8),
  ),
  served(
    "json-large",
    "HTTP JSON, FP32[1,3,224,224] in, one value out, 4 connections",
    "node:http, JSON.parse, Float32Array.from",
    "≥ 1.8",
    RequestLoad.http(Request.json("glance"), 4),
    handler("json"),
    rate(1.8),
  ),
  served(
    "json-large-echo",
    "HTTP JSON, FP32[1,3,224,224] in and out, 4 connections",
    "node:http, JSON.parse, Float32Array.from, JSON.stringify",
    "≥ 1.8",
    RequestLoad.http(Request.json("mirror"), 4),
    handler("json"),
    rate(1.8),
  ),
  httpStream,
  pipeline(64, 1.3),
  digits("digits", "digits over gRPC, 64 in flight, one instance", "server"),
  digits("digits-cores", "the same, both sides on all cores, the load on one of them", "both"),
  served(
    "latency",
    "added latency, gRPC unary add_sub, 1 in flight, p50",
    bareHttp2,
    "≤ +60 µs",
    RequestLoad.unary("add_sub", 1),
    echo,
    delay(60),
  ),
  waiting(2),
  waiting(5),
  sequence,
  client,
  loop,
  memory,
  served(
    "grpc-16",
    "gRPC unary, add_sub, 16 in flight on 4 connections",
    bareHttp2,
    noTarget,
    RequestLoad.unary("add_sub", 16),
    echo,
    rate(),
  ),
  served(
    "http-small",
    "HTTP binary, add_sub, 32 connections",
    bareHttp,
    noTarget,
    RequestLoad.http(Request.binary("add_sub"), 32),
    echo,
    rate(),
  ),
  served(
    "http-latency",
    "added latency, HTTP binary add_sub, 1 in flight, p50",
    bareHttp,
    noTarget,
    RequestLoad.http(Request.binary("add_sub"), 1),
    echo,
    delay(),
  ),
  pipeline(1),
  pipeline(16),
  served(
    "digits-latency",
    "added latency, gRPC unary digits, 1 in flight, p50, the network included",
    bareHttp2,
    noTarget,
    RequestLoad.unary("digits", 1),
    echo,
    delay(),
  ),
]
