/** `nereid serve` as a user meets it: the table, the exits, and what it says of a module that cannot be served. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { get } from "node:https"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { command, hasCurl, nereid, nereidWith, Program, root, shell } from "../Program.ts"

const anyPort = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]

it.each(["SIGTERM", "SIGINT"] as const)("prints a table of its models, and ends with 0 on %s", async (signal) => {
  await using server = nereid("serve", "examples/models.ts", ...anyPort)
  await server.match(/MODEL +VERSION +STATUS/)
  await server.match(/add_sub +1 +READY +64/)
  await server.match(/digits +1 +READY +64 +image FP32\[1,28,28\]/)
  await server.match(/Metrics Service at .*:\d+/)
  server.signal(signal)
  const { code, output } = await server.ended
  expect(code).toBe(0)
  expect(output).toMatch(new RegExp(`\nStopping on ${signal}\nStopped in \\d+ ms\n$`))
})

it("starts with a small young generation, which grows with the load", async () => {
  const preloaded = ["--import", "./test/fixtures/programs/youngGeneration.ts"]
  await using server = new Program([...preloaded, command, "serve", "examples/models.ts", ...anyPort])
  await server.match(/Metrics Service at .*:\d+/)
  server.signal("SIGUSR2")
  const [, before, after] = await server.match(/young generation: (\d+) MB, (\d+) MB/)
  // Both semi-spaces of a megabyte.
  expect(Number(before)).toBeLessThanOrEqual(2)
  expect(Number(after)).toBeGreaterThan(Number(before))
})

it("starts without V8's optimizing compilers, which the load then uses", async () => {
  const preloaded = ["--trace-opt", "--import", "./test/fixtures/programs/youngGeneration.ts"]
  await using server = new Program([...preloaded, command, "serve", "examples/models.ts", ...anyPort])
  const { input, index } = await server.match(/Metrics Service at .*:\d+/)
  const compiled = input.slice(0, index).match(/(?<=\(target )\w+/g) ?? []
  expect(compiled.filter((compiler) => compiler !== "MAGLEV")).toEqual([])
  // Those before main.ts; it would be hundreds.
  expect(compiled.length).toBeLessThan(100)
  server.signal("SIGUSR2")
  await server.match(/\(target MAGLEV/)
  await server.match(/\(target TURBOFAN/)
})

it("keeps compiled modules for the next start, also if it is killed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "nereid-serve-"))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  await using server = nereidWith({ NODE_COMPILE_CACHE: directory }, "serve", "examples/models.ts", ...anyPort)
  const modules = () => readdirSync(directory, { recursive: true }).length
  await server.match(/Metrics Service at .*:\d+/)
  await expect.poll(modules).toBeGreaterThan(100)
  server.signal("SIGKILL")
})

const inferStuck = async (server: Program) => {
  const [, port] = await server.match(/HTTPService at .*:(\d+)/)
  const body = JSON.stringify({ inputs: [{ name: "TEXT", shape: [1], datatype: "BYTES", data: ["x"] }] })
  const response = fetch(`http://localhost:${port}/v2/models/stuck/infer`, { method: "POST", body }).catch(
    () => undefined,
  )
  await server.match(/^stuck$/m)
  return response
}

it("answers a request in flight at SIGTERM, and then ends with 0 (C40)", async () => {
  const server = nereid("serve", "test/fixtures/modules/patient.ts", ...anyPort)
  const [, port] = await server.match(/HTTPService at .*:(\d+)/)
  const body = JSON.stringify({ inputs: [{ name: "TEXT", shape: [1], datatype: "BYTES", data: ["x"] }] })
  const response = fetch(`http://localhost:${port}/v2/models/patient/infer`, { method: "POST", body })
  await server.match(/^entered$/m)
  server.signal("SIGTERM")
  await expect(response.then((value) => value.json())).resolves.toMatchObject({ outputs: [{ data: ["x"] }] })
  const { code, output } = await server.ended
  expect(code).toBe(0)
  expect(output).toContain("Stopping on SIGTERM: 1 request in flight may take 30 s more\n")
  expect(output).toMatch(/\nStopped in \d+ ms: 1 request answered\n$/)
})

it("is not ready but answers for --drain-delay after SIGTERM, and then stops (variable of the flag)", async () => {
  const server = new Program([command, "serve", "test/fixtures/modules/kinds.ts", ...anyPort], {
    NEREID_DRAIN_DELAY: "1",
  })
  const [, port] = await server.match(/HTTPService at .*:(\d+)/)
  const statusOf = async (path: string) => (await fetch(`http://localhost:${port}${path}`)).status
  expect(await statusOf("/v2/health/ready")).toBe(200)
  server.signal("SIGTERM")
  await server.match(/Not ready any more, on SIGTERM: answering requests for 1 s/)
  const response = await fetch(`http://localhost:${port}/v2`)
  expect([response.status, response.headers.get("connection")]).toEqual([200, "close"])
  expect(await statusOf("/v2/health/ready")).toBe(400)
  const { code, output } = await server.ended
  expect(code).toBe(0)
  expect(output).toMatch(/answering requests for 1 s\n[^]*Stopping on SIGTERM\nStopped in \d+ ms\n$/)
})

it("ends by force on a second signal, where a model cannot be stopped", async () => {
  const server = nereid("serve", "test/fixtures/modules/stuck.ts", ...anyPort)
  const response = inferStuck(server)
  await server.match(/^stuck$/m)
  server.signal("SIGTERM")
  await server.match(/Stopping on SIGTERM/)
  await server.match(/A second signal ends the process at once/)
  server.signal("SIGTERM")
  expect(await server.ended).toMatchObject({
    signal: "SIGKILL",
    output: expect.stringContaining("received SIGTERM twice"),
  })
  await response
})

const unshare = ["--pid", "--fork", "--kill-child"]
const canUnshare = spawnSync("unshare", [...unshare, "true"]).status === 0

it.skipIf(!canUnshare)("ends by force as the first process of a container, which ignores its own SIGKILL", async () => {
  const serve = [command, "serve", "test/fixtures/modules/stuck.ts", ...anyPort, "--exit-timeout-secs=0"]
  const server = new Program([...unshare, process.execPath, ...serve], {}, root, "unshare")
  const response = inferStuck(server)
  await server.match(/^stuck$/m)
  // unshare ignores it, and its child is the only one.
  const [child = ""] = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, "utf8").split(" ")
  process.kill(Number(child), "SIGTERM")
  const { code, output } = await server.ended
  expect(code).toBe(137)
  expect(output).toContain("Exiting by force: the process did not stop within 5 s")
  await response
})

it("ends by force where a model has not stopped within --exit-timeout-secs and five seconds more (C40)", async () => {
  const server = nereid("serve", "test/fixtures/modules/stuck.ts", ...anyPort, "--exit-timeout-secs=0")
  const response = inferStuck(server)
  await server.match(/^stuck$/m)
  server.signal("SIGTERM")
  const { signal, output } = await server.ended
  expect(signal).toBe("SIGKILL")
  expect(output).toContain("1 request in flight may take 0 s more")
  expect(output).toContain("Exiting by force: the process did not stop within 5 s")
  await response
})

it("logs an error outside of requests; an uncatchable one ends the process with 1 after its requests", async () => {
  await using server = nereid("serve", "test/fixtures/modules/stray.ts", ...anyPort)
  const [, port] = await server.match(/HTTPService at .*:(\d+)/)
  const infer = async (mode: string) => {
    const body = JSON.stringify({ inputs: [{ name: "HOW", shape: [1], datatype: "BYTES", data: [mode] }] })
    const response = await fetch(`http://localhost:${port}/v2/models/stray/infer`, { method: "POST", body })
    return JSON.parse(await response.text()).outputs[0].data
  }
  expect(await infer("reject")).toEqual(["reject"])
  await server.match(/^E.*Unhandled promise rejection.*nobody awaits this/m)
  expect(await infer("on")).toEqual(["on"])
  expect(await infer("throw")).toEqual(["throw"])
  const { code, output } = await server.ended
  expect(code).toBe(1)
  expect(output).toMatch(/Uncaught error.*nobody catches this/)
  expect(output).toContain("Stopping because an error was not caught: 1 request in flight")
})

it("models call others of the same module by name", async () => {
  await using server = nereid("serve", "test/fixtures/modules/route.ts", ...anyPort)
  const [, port] = await server.match(/HTTPService at .*:(\d+)/)
  const inputs = [
    { name: "MODEL", datatype: "BYTES", shape: [1], data: ["twice"] },
    { name: "x", datatype: "FP32", shape: [1], data: [21] },
  ]
  const url = `http://localhost:${port}/v2/models/route/infer`
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ inputs }) })
  expect(await response.json()).toMatchObject({ outputs: [{ data: ["y: 42"] }] })
})

it.skipIf(!hasCurl)("the curl line of a model with inputs of every kind works", async () => {
  await using server = nereid("serve", "test/fixtures/modules/kinds.ts", "--http-address=::1", ...anyPort)
  const [, line = ""] = await server.match(/Try:\n(.*)\n/)
  expect(JSON.parse(await shell(line))).toMatchObject({ outputs: [{ name: "OK", data: [true] }] })
})

it.skipIf(!hasCurl)("everything on one port, and its curl line", async () => {
  const onePort = ["--port=0", "--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"]
  await using server = nereid("serve", "test/fixtures/modules/kinds.ts", ...onePort)
  const [, port] = await server.match(/^Started HTTPService and GRPCInferenceService at 0\.0\.0\.0:(\d+)$/m)
  const [, line = ""] = await server.match(/Try:\n(.*)\n/)
  expect(line).toContain(`http://localhost:${port}/v2/`)
  expect(JSON.parse(await shell(line))).toMatchObject({ outputs: [{ name: "OK", data: [true] }] })
})

it.skipIf(!hasCurl)(
  "the curl line of a decoupled model streams; there is none for inputs that JSON cannot represent",
  async () => {
    await using server = nereid("serve", "test/fixtures/modules/decoupled.ts", ...anyPort)
    const [, line = ""] = await server.match(/Try:\n(.*)\n/)
    expect(line).toContain("/v2/models/streamed%20kinds/generate_stream -d '")
    const given = JSON.stringify({ text: "it's", label: "only", flag: true, big: ["1", "1"], dynamic: 2 })
    const event = JSON.stringify({ model_name: "streamed kinds", model_version: "1", GIVEN: given })
    expect(await shell(line)).toBe(`data: ${event}\n\n`.repeat(2))
    expect(server.output.match(/curl/g)).toHaveLength(1)
  },
)

it.skipIf(!hasCurl)("the curl lines of models and routes contain required parameters", async () => {
  await using server = nereid("serve", "test/fixtures/modules/parameters.ts", ...anyPort)
  const [, list = ""] = await server.match(/Try:\n((?:  .*\n){3})/)
  const responses = await Promise.all(list.trim().split("\n").map(shell))
  expect(responses).toHaveLength(3)
  for (const response of responses) expect(response).toContain(`0.25 1 it's true none`)
})

it("a model that cannot start is shown with its reason, and without a curl line", async () => {
  await using server = nereid("serve", "test/fixtures/modules/unavailable.ts", ...anyPort)
  await server.match(/missing version 1 is UNAVAILABLE: no weights\n/)
  await server.match(/Try:\n.*\/v2\/models\/there\/.*\n/)
  expect(server.output.match(/curl/g)).toHaveLength(1)
})

it("serves the routes that the module exports", async () => {
  await using server = nereid("serve", "examples/models.ts", ...anyPort)
  const [, port] = await server.match(/HTTP.*?:(\d+)/)
  const response = await fetch(`http://127.0.0.1:${port}/sentiment`, {
    method: "POST",
    body: JSON.stringify({ TEXT: "what a wonderful film" }),
  })
  expect(await response.json()).toEqual({ CLASS: "positive", PROB: expect.closeTo(1, 1) })
})

it.skipIf(!hasCurl)("lists the routes of the module, with a curl line for each whose body fits in a line", async () => {
  await using server = nereid("serve", "test/fixtures/modules/routes.ts", ...anyPort)
  const [, list = ""] = await server.match(/Try:\n((?:  .*\n)+)/)
  expect(server.output).toMatch(
    /^ROUTE +MODEL\n[- ]+\nPOST \/picture +picture\nPOST \/it's +told\nPOST \/large +large\nPOST \/absent +absent\nGET \/openapi\.json +describes all routes\n/m,
  )
  const lines = list.split("\n").filter((line) => line !== "" && !line.includes("/v2/"))
  expect(lines).toHaveLength(2)
  const [picture = "", told = ""] = lines
  expect(JSON.parse(await shell(picture))).toEqual({ SIZE: 105 })
  expect(await shell(told)).toBe('data: {"SAID":"good morning"}\n\n')
})

it.each([
  ["does not exist", ["test/fixtures/modules/absent.ts"], "absent.ts cannot be loaded: the file does not exist"],
  ["throws", ["test/fixtures/modules/throws.ts"], /throws\.ts cannot be loaded: no weights \(\/.*\/throws\.ts:2:7\)$/],
  ["exports no model", ["packages/core/src/tensor/DataType.ts"], "DataType.ts exports no model"],
  [
    "exports no layer",
    ["test/fixtures/modules/no-layer.ts"],
    /no-layer\.ts exports no layer: export the result of Model\.each/,
  ],
  [
    "lacks a model's layer",
    ["test/fixtures/modules/other-layer.ts"],
    "no exported layer provides the exported model 'digits'",
  ],
  [
    "exports routes to no model",
    ["test/fixtures/modules/odd-routes.ts"],
    'odd-routes.ts exports routes that are not { "POST /path": Model, … }',
  ],
  ["has a broken ONNX file", ["test/fixtures/modules/broken-onnx.ts"], "broken-onnx.ts"],
])("exits with 1 and the reason in one line, for a module that %s", async (_, args, message) => {
  const { code, output } = await nereid("serve", ...args, ...anyPort).ended
  expect(output.trim()).toMatch(message)
  expect(output.trim()).toMatch(/^Error: .*$/)
  expect(code).toBe(1)
})

it.each([
  ["certificates", ["--grpc-use-ssl=1", "--grpc-server-cert=/absent", "--grpc-server-key=/absent"], "/absent for TLS"],
  ["restricted APIs", Array(2).fill("--http-restricted-api=health:a=secret"), "restricted api 'health' can not"],
  ["a file for the log", ["--log-file=/absent/server.log"], "cannot write the log file /absent/server.log"],
])("exits with 1 and the reason in one line, for %s that is impossible", async (_, flags, message) => {
  const { code, output } = await nereid("serve", "examples/models.ts", ...anyPort, ...flags).ended
  expect(output.trim()).toMatch(/^Error: .*$/)
  expect(output).toContain(message)
  expect(code).toBe(1)
})

it("ends with 1 and names the port that is in use", async () => {
  const blocker = createServer()
  await new Promise<void>((resolve) => blocker.listen(0, () => resolve()))
  const address = blocker.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const { code, output } = await nereid("serve", "examples/models.ts", ...anyPort.slice(1), `--http-port=${port}`).ended
  blocker.close()
  expect(output.trim()).toMatch(new RegExp(`^Error: .*:${port}.*$`))
  expect(code).toBe(1)
})

it("refuses a drain timeout below zero", async () => {
  const { code } = await nereid("serve", "examples/models.ts", ...anyPort, "--exit-timeout-secs=-5").ended
  expect(code).toBe(1)
})

it("accepts the flags of tritonserver, and lists those without an effect", async () => {
  const flags = ["--allow-grpc", "false", "--metrics-config=summary_latencies=true", "--http-thread-count", "8"]
  const log = ["--log-verbose=1", "--log-info", "0", "--log-format=ISO8601", "--trace-config", "rate=7"]
  await using server = nereid("serve", "examples/models.ts", ...anyPort, ...flags, ...log, "--trace-count=1")
  const [, port] = await server.match(/Metrics Service at .*:(\d+)/)
  expect(server.output).toMatch(/^Warning: '--trace-count' has been deprecated and will be removed/m)
  expect(server.output).toMatch(/^Warning: Flags without effect: --http-thread-count$/m)
  const [, httpPort] = await server.match(/HTTPService at .*:(\d+)/)
  expect(server.output).not.toContain("GRPCInferenceService")
  const metrics = await fetch(`http://localhost:${port}/metrics`)
  expect(await metrics.text()).toContain('nv_inference_request_summary_us_count{model="add_sub",version="1"} 0')
  const logging = await fetch(`http://localhost:${httpPort}/v2/logging`)
  expect(await logging.json()).toMatchObject({ log_verbose_level: 1, log_info: false, log_format: "ISO8601" })
  const trace = await fetch(`http://localhost:${httpPort}/v2/trace/setting`)
  expect(await trace.json()).toMatchObject({ trace_rate: "7", trace_level: ["OFF"] })
  await server.match(/^[\d-]+T[\d:]+Z I .*\/v2\/logging/m)
})

it("speaks TLS with the certificates that flags name", async () => {
  const folder = await mkdtemp(join(tmpdir(), "nereid-serve-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const trusted = authority()
  const { cert, key } = trusted.issue("server")
  await writeFile(join(folder, "tls.crt"), cert)
  await writeFile(join(folder, "tls.key"), key)
  const flags = ["--http-use-ssl=true", "--http-server-cert", join(folder, "tls.crt")]
  const keyFlags = ["--http-server-key", join(folder, "tls.key")]
  await using server = nereid("serve", "examples/models.ts", ...anyPort, ...flags, ...keyFlags)
  const [, port] = await server.match(/curl -s https:\/\/localhost:(\d+)/)
  const status = await new Promise((resolve, reject) => {
    const url = `https://localhost:${port}/v2/health/ready`
    const request = get(url, { ca: trusted.cert, agent: false }, ({ statusCode }) => resolve(statusCode))
    request.on("error", reject)
  })
  expect(status).toBe(200)
})

it("ends with 1 where flags do not fit together", async () => {
  const { code, output } = await nereid("serve", "examples/models.ts", ...anyPort, "--grpc-use-ssl=true").ended
  expect(output.trim()).toBe("Error: --grpc-use-ssl requires --grpc-server-cert and --grpc-server-key")
  expect(code).toBe(1)
})

it("lists its flags in groups, with --help", async () => {
  const { code, output } = await nereid("serve", "--help").ended
  expect(output).toMatch(
    /^HTTP\n(  --.*\n)*  --http-port integer +Port for HTTP; 0 selects a free port \(default 8000\)\n/m,
  )
  expect(code).toBe(0)
})

it("refuses flags that would change what is served", async () => {
  const { code, output } = await nereid("serve", "examples/models.ts", "--reuse-http-port=true").ended
  expect(output).toContain("--reuse-http-port=true is not supported: servers cannot share a port")
  expect(code).toBe(1)
})

it("suggests the flag that was meant", async () => {
  const { code, output } = await nereid("serve", "examples/models.ts", "--htpp-port=0").ended
  expect(output).toContain("--http-port")
  expect(output).toContain("Usage: nereid serve")
  expect(code).toBe(1)
})

it("a model that is served elsewhere, and cannot be verified, ends the start in one line", async () => {
  const { code, output } = await nereid("serve", "test/fixtures/modules/remote.ts", ...anyPort).ended
  expect(code).toBe(1)
  expect(output).toMatch(/^Error: cannot reach 127\.0\.0\.1:9: .*\n$/)
})

it("a model that fails its warm-up ends the start in one line, after the logged stack", async () => {
  const { code, output } = await nereid("serve", "test/fixtures/modules/failing-warm-up.ts", ...anyPort).ended
  expect(code).toBe(1)
  expect(output).toMatch(/^E.*The handler of model 'cold' failed Error: no weights.*$/m)
  expect(output).toMatch(/^Error: model 'cold' version 1 has failed its warm-up on instance cold_0: .*no weights$/m)
  expect(output.trim().split("\n")).toHaveLength(2)
})
