/**
 * Measures the figures of docs/guides/capacity.md, and prints them. Run it with
 * `npm run build && npx node test/deploy/capacity.ts [starts,digits,dense]`.
 * The server is the built package. One core is the server's alone, and another one the load generator's; on both cores,
 * the server shares them with it. Needs taskset.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { initializer, model, node, value } from "../fixtures/onnx.ts"
import { freePort, Program, root } from "../Program.ts"

const starts = 5
const width = 1024

/** Two products with a matrix of 4 MB: about 4 million multiplications for a row. */
const dense = () =>
  model({
    inputs: [value("X", "FP32", ["n", width])],
    outputs: [value("Y", "FP32", ["n", width])],
    nodes: [node("MatMul", ["X", "A"], ["B"]), node("Relu", ["B"], ["C"]), node("MatMul", ["C", "A"], ["Y"])],
    initializers: [initializer("A", "FP32", [width, width], new Float32Array(width * width).fill(0.001))],
  })

const folder = mkdtempSync(join(tmpdir(), "nereid-capacity-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))

/** The built packages, as npm installs them for a user. */
const install = (): string => {
  const packages = globSync("dist/*.tgz", { cwd: root }).map((file) => join(root, file))
  writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}')
  const others = ["effect@^4.1.0", "@effect/platform-node-shared@~4.1.0", "onnxruntime-node@^1.30.0"]
  const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder, ...packages, ...others]
  execFileSync("npm", args, { env: { ...process.env, ONNXRUNTIME_NODE_INSTALL: "skip" }, stdio: "inherit" })
  return join(folder, "node_modules/@nereid/cli/dist/main.js")
}

/** A repository with a number of copies of the model for digits, and the dense one. */
const repository = (copies: number): string => {
  const path = join(folder, `models-${copies}`)
  for (let index = 0; index < copies; index++) {
    const version = join(path, index === 0 ? "digits" : `digits-${index}`, "1")
    mkdirSync(version, { recursive: true })
    copyFileSync(join(root, "examples/digits/digits.onnx"), join(version, "model.onnx"))
  }
  return path
}

interface Server {
  readonly program: Program
  readonly ports: { readonly http: number; readonly grpc: number; readonly metrics: number }
  /** Milliseconds from the start of the process until it is ready. */
  readonly readyAfter: number
}

const start = async (main: string, models: string, cores: string): Promise<Server> => {
  const [http, grpc, metrics] = await Promise.all([freePort(), freePort(), freePort()])
  const ports = [`--http-port=${http}`, `--grpc-port=${grpc}`, `--metrics-port=${metrics}`]
  const args = ["-c", cores, process.execPath, main, "serve", `--model-repository=${models}`, ...ports]
  const began = performance.now()
  const program = new Program(args, { MALLOC_ARENA_MAX: "2" }, folder, "taskset")
  const isReady = () =>
    fetch(`http://127.0.0.1:${http}/v2/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 5))
  return { program, ports: { http, grpc, metrics }, readyAfter: performance.now() - began }
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? NaN

/** Resident megabytes of a process. */
const resident = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1000

const coldStarts = async (main: string, copies: number, cores: string): Promise<void> => {
  const models = repository(copies)
  const times: Array<number> = []
  const memory: Array<number> = []
  for (let index = 0; index < starts; index++) {
    const { program, readyAfter } = await start(main, models, cores)
    times.push(readyAfter)
    memory.push(resident(program.pid))
    await program[Symbol.asyncDispose]()
  }
  const [time, size] = [median(times), median(memory)].map((figure) => figure.toFixed(0))
  console.log(`${copies} models on cores ${cores}: ready after ${time} ms, ${size} MB`)
}

const saturation = async (port: number): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^nereid_saturation(?:\{\})? ([\d.e-]+)/m.exec(text)?.[1])
}

/** Runs the load generator. Returns the rows of its table, by the names of the columns. */
const bench = (name: string, port: number, cores: string, ...load: ReadonlyArray<string>) => {
  const csv = join(folder, "bench.csv")
  const common = ["bench", "-m", name, "-u", `grpc://127.0.0.1:${port}`, "--rounds=4", `--csv=${csv}`]
  const args = ["-c", cores, process.execPath, join(root, "packages/cli/src/main.ts"), ...common, ...load]
  const { status, stderr, stdout } = spawnSync("taskset", args, { encoding: "utf8", timeout: 200_000 })
  if (status !== 0) throw new Error(`${stdout}${stderr}`)
  const [head = "", ...rows] = readFileSync(csv, "utf8").trim().split("\n")
  return rows.map((row) => Object.fromEntries(head.split(",").map((column, index) => [column, row.split(",")[index]])))
}

const capacity = async (main: string, name: string, cores: string, generator: string): Promise<void> => {
  const { program, ports } = await start(main, join(folder, "capacity"), cores)
  const [closed] = bench(name, ports.grpc, generator, "--concurrency=32")
  const limit = Number(closed?.["requests/s"])
  console.log(`${name} on cores ${cores}: ${JSON.stringify(closed)}`)
  for (const part of [0.3, 0.5, 0.7, 0.9]) {
    await saturation(ports.metrics)
    const [open] = bench(name, ports.grpc, generator, `--request-rate=${Math.round(part * limit)}`)
    const gauge = await saturation(ports.metrics)
    console.log(`  ${part}: saturation ${gauge}, ${JSON.stringify(open)}`)
  }
  console.log(`  ${resident(program.pid).toFixed(0)} MB`)
  await program[Symbol.asyncDispose]()
}

const main = install()
/** Names of the measurements. */
const [, , only = "starts,digits,dense"] = process.argv
if (only.includes("starts")) {
  for (const cores of ["0", "0,1"]) for (const copies of [1, 10]) await coldStarts(main, copies, cores)
}
const names = ["digits", "dense"].filter((name) => only.includes(name))
if (names.length > 0) {
  for (const [name, bytes] of [
    ["digits", readFileSync(join(root, "examples/digits/digits.onnx"))],
    ["dense", dense()],
  ] as const) {
    const version = join(folder, "capacity", name, "1")
    mkdirSync(version, { recursive: true })
    writeFileSync(join(version, "model.onnx"), bytes)
    writeFileSync(join(folder, "capacity", name, "config.pbtxt"), "max_batch_size: 32\ndynamic_batching {}\n")
  }
  for (const name of names) {
    await capacity(main, name, "0", "1")
    await capacity(main, name, "0,1", "0,1")
  }
}
process.exit()
