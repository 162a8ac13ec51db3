/** `nereid serve --watch` as a developer meets it: real files, processes and connections. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer, type AddressInfo } from "node:net"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { expect, it, onTestFinished, vi } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { nereid, Program, command, root } from "../Program.ts"

const anyPort = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]

// Each test starts several processes, one after the other.
vi.setConfig({ testTimeout: 120_000 })

const models = `
import { Model, Tensor } from "@nereid/core"
import { suffix } from "./parts/suffix.ts"
console.log("process", process.pid)
export class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LOUD: Tensor.utf8() },
  maxBatchSize: 8,
}) {}
export const ShoutLive = Model.each(Shout, ({ TEXT }) => {
  if (TEXT === "exit") process.exit(3)
  return { LOUD: TEXT.toUpperCase() + suffix }
})
`

class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LOUD: Tensor.utf8() },
  maxBatchSize: 8,
}) {}

/** A project below the repository, so that its packages resolve. */
const project = (files: Readonly<Record<string, string>> = {}) => {
  const folder = mkdtempSync(join(root, "test", ".watch-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = (name: string) => join(folder, name)
  const write = (name: string, text: string) => writeFileSync(path(name), text)
  mkdirSync(path("parts"))
  for (const [name, text] of Object.entries({ "models.ts": models, "parts/suffix.ts": suffix("!"), ...files })) {
    write(name, text)
  }
  return { path, write }
}

const suffix = (text: string) => `export const suffix: string = ${JSON.stringify(text)}\n`

const watching = (file: string, ...flags: ReadonlyArray<string>) =>
  nereid("serve", file, "--watch", ...anyPort, ...flags)

const httpPort = async (server: Program) => Number((await server.match(/HTTPService at .*:(\d+)/))[1])

const infer = async (port: number, text = "x") => {
  const body = JSON.stringify({ inputs: [{ name: "TEXT", shape: [1, 1], datatype: "BYTES", data: [text] }] })
  const init = { method: "POST", body, headers: { connection: "close" } }
  const response = await fetch(`http://127.0.0.1:${port}/v2/models/shout/infer`, init)
  return JSON.parse(await response.text()).outputs?.[0].data[0]
}

/** Matches the nth restart. */
const restarts = (count: number) => new RegExp(`(Restarted in [^]*?){${count}}`)

const processes = (server: Program) => [...server.output.matchAll(/^process (\d+)$/gm)].map(([, pid]) => Number(pid))

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

it("serves a changed import on the same ports; no request of the meantime fails", async () => {
  const { path, write } = project()
  await using server = watching(path("models.ts"))
  await server.match(/Watching for changes/)
  const port = await httpPort(server)
  const [, grpc] = await server.match(/GRPCInferenceService at .*:(\d+)/)
  expect(await infer(port)).toBe("X!")
  const over = new AbortController()
  const answers = new Set<unknown>()
  const calling = (async () => {
    while (!over.signal.aborted) answers.add(await infer(port))
  })()
  try {
    for (const [index, text] of ["?", "#"].entries()) {
      // As editors save: another file takes the place.
      write("parts/suffix.ts.new", suffix(text))
      renameSync(path("parts/suffix.ts.new"), path("parts/suffix.ts"))
      await server.match(restarts(index + 1))
      expect(await infer(port)).toBe(`X${text}`)
    }
  } finally {
    over.abort()
  }
  await calling
  expect([...answers].filter((answer) => answer !== "X!" && answer !== "X?" && answer !== "X#")).toEqual([])
  await using shout = await Client.connect(Shout, { url: `grpc://127.0.0.1:${grpc}` })
  expect(await shout.infer({ TEXT: "y" })).toEqual({ LOUD: "Y#" })
  expect(server.output).toMatch(/^Restarting: .*suffix\.ts has changed$/m)
  expect(server.output.match(/Stopping because a new version has replaced this one/g)?.length).toBeGreaterThan(0)
})

it("answers a request in flight with the version that it began with", async () => {
  const slow = models.replace("suffix }", "suffix }").replace(
    "({ TEXT }) => {",
    `async ({ TEXT }) => {
  if (TEXT === "slow") {
    console.log("entered")
    await new Promise((resolve) => process.once("SIGTERM", resolve))
  }`,
  )
  const { path, write } = project({ "models.ts": slow })
  await using server = watching(path("models.ts"))
  await server.match(/Watching for changes/)
  const port = await httpPort(server)
  const response = infer(port, "slow")
  await server.match(/entered/)
  write("parts/suffix.ts", suffix("?"))
  await server.match(restarts(1))
  expect(await response).toBe("SLOW!")
  expect(await infer(port)).toBe("X?")
})

it("keeps serving where a change has a mistake, and takes the next change", async () => {
  const { path, write } = project()
  await using server = watching(path("models.ts"))
  await server.match(/Watching for changes/)
  const port = await httpPort(server)
  write("parts/suffix.ts", "export const suffix = ")
  await server.match(/cannot be loaded: .*suffix\.ts:1\)/)
  await server.match(/the version before the change keeps serving/)
  expect(await infer(port)).toBe("X!")
  write("models.ts", models.replace("./parts/suffix.ts", "./parts/other.ts"))
  await server.match(/(keeps serving[^]*){2}/)
  // A file that was missing is created.
  write("parts/other.ts", suffix("+"))
  await server.match(restarts(1))
  expect(await infer(port)).toBe("X+")
})

it("waits for a change where the first version cannot be loaded; connections wait where one has crashed", async () => {
  const { path, write } = project({ "parts/suffix.ts": "export const suffix = " })
  await using server = watching(path("models.ts"))
  await server.match(/The server exited with code 1; connections wait until a change starts it again/)
  write("parts/suffix.ts", suffix("!"))
  await server.match(/Watching for changes/)
  const port = await httpPort(server)
  await expect(infer(port, "exit")).rejects.toThrow()
  await server.match(/The server exited with code 3; /)
  const waiting = infer(port)
  const connected = connect(port, "127.0.0.1")
  await new Promise((resolve) => connected.once("connect", resolve))
  connected.destroy()
  write("parts/suffix.ts", suffix("?"))
  expect(await waiting).toBe("X?")
})

it("learns of every file of a version that ends before its supervisor reads a message", async () => {
  const names = Array.from({ length: 2000 }, (_, index) => `part${index}.ts`)
  const { path, write } = project({
    ...Object.fromEntries(names.map((name) => [`parts/${name}`, ""])),
    "models.ts": `
      process.kill(process.ppid, "SIGSTOP")
      process.on("exit", () => console.log("leaving"))
      await import("./parts/all.ts")`,
    "parts/all.ts": names.map((name) => `import "./${name}"\n`).join("") + 'import "./suffix.ts"',
    "parts/suffix.ts": "export const suffix = ",
  })
  await using server = watching(path("models.ts"))
  await server.match(/leaving/)
  server.signal("SIGCONT")
  await server.match(/The server exited with code 1; /)
  write("parts/suffix.ts", suffix("!"))
  await server.match(/Restarting: .*suffix\.ts has changed/)
  write("models.ts", models)
  await server.match(/Watching for changes/)
})

it("restarts for a module that a worker thread imports, not for a file that nothing imports", async () => {
  const { path, write } = project({
    "models.ts": `
      import { Model, Tensor } from "@nereid/core"
      import { Worker } from "@nereid/worker"
      import { Shout } from "./contract.ts"
      export { Shout }
      export const ShoutLive = Worker.layer()(Shout, new URL("./handler.ts", import.meta.url))`,
    "contract.ts": models
      .replace('import { suffix } from "./parts/suffix.ts"', "")
      .replace(/export const ShoutLive[^]*/, ""),
    "handler.ts": `
      import { Model } from "@nereid/core"
      import { Shout } from "./contract.ts"
      import { suffix } from "./parts/suffix.ts"
      export default Model.each(Shout, ({ TEXT }) => ({ LOUD: TEXT.toUpperCase() + suffix }))`,
  })
  await using server = watching(path("models.ts"))
  await server.match(/Watching for changes/)
  const port = await httpPort(server)
  write("parts/unrelated.ts", "export {}")
  write("parts/suffix.ts", suffix("?"))
  await server.match(restarts(1))
  expect(await infer(port)).toBe("X?")
  expect(server.output.match(/Restarting: /g)).toHaveLength(1)
  expect(server.output).not.toContain("unrelated")
})

it("speaks TLS and everything on one port, over restarts", async () => {
  const { path, write } = project()
  const trusted = authority()
  const { cert, key } = trusted.issue("server")
  write("tls.crt", cert)
  write("tls.key", key)
  const onePort = ["--port=0", "--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"]
  const tls = ["--port-use-ssl=true", `--port-server-cert=${path("tls.crt")}`, `--port-server-key=${path("tls.key")}`]
  await using server = nereid("serve", path("models.ts"), "--watch", ...onePort, ...tls)
  await server.match(/Watching for changes/)
  const [, port] = await server.match(/HTTPService and GRPCInferenceService at .*:(\d+)/)
  for (const [restart, text] of ["!", "?"].entries()) {
    if (restart > 0) {
      write("parts/suffix.ts", suffix(text))
      await server.match(restarts(restart))
    }
    for (const scheme of ["grpcs", "https"]) {
      const options = { url: `${scheme}://localhost:${port}`, tls: { ca: trusted.cert } }
      await using shout = await Client.connect(Shout, options)
      expect(await shout.infer({ TEXT: "x" })).toEqual({ LOUD: `X${text}` })
    }
  }
})

it.each(["SIGINT", "SIGTERM"] as const)("%s ends every process, with 0", async (signal) => {
  const { path } = project()
  const server = watching(path("models.ts"))
  await server.match(/Watching for changes/)
  server.signal(signal)
  const { code, output } = await server.ended
  expect(code).toBe(0)
  expect(output).toMatch(new RegExp(`Stopping on ${signal}\\nStopped in \\d+ ms\\n$`))
  expect(processes(server).filter(isAlive)).toEqual([])
})

it("a second signal ends every process by force; so does the end of the supervisor, gracefully", async () => {
  const { path } = project({
    "models.ts": models.replace("({ TEXT }) => {", "async ({ TEXT }) => { console.log('stuck'); for (;;);"),
  })
  const server = watching(path("models.ts"))
  await server.match(/Watching for changes/)
  const response = infer(await httpPort(server)).catch(() => "lost")
  await server.match(/stuck/)
  server.signal("SIGINT")
  server.signal("SIGTERM")
  expect(await server.ended).toMatchObject({ signal: "SIGKILL" })
  expect(await response).toBe("lost")

  const other = project()
  const orphaned = watching(other.path("models.ts"))
  await orphaned.match(/Watching for changes/)
  orphaned.signal("SIGKILL")
  const { output } = await orphaned.ended
  expect(output).toContain("Stopping because its supervisor has ended")
})

it("ends with 1 where a restart cannot help: a flag, a missing module, a port in use", async () => {
  const { path } = project()
  expect(await nereid("serve", "--watch", "--model-repository=x").ended).toMatchObject({
    code: 1,
    output: "Error: --watch needs a module, whose files it watches\n",
  })
  const mistaken = await watching(path("models.ts"), "--grpc-use-ssl=true").ended
  expect(mistaken).toMatchObject({ code: 1, output: expect.stringContaining("Error: --grpc-use-ssl requires") })
  const blocker = createServer()
  await new Promise<void>((resolve) => blocker.listen(0, () => resolve()))
  onTestFinished(() => void blocker.close())
  const { port } = blocker.address() as AddressInfo
  const args = [command, "serve", path("models.ts"), "--watch", ...anyPort.slice(1), `--http-port=${port}`]
  const refused = await new Program(args).ended
  expect(refused.code).toBe(1)
  expect(refused.output).toMatch(new RegExp(`Error: cannot listen for HTTP on 0\\.0\\.0\\.0:${port}: .*EADDRINUSE`))
})
