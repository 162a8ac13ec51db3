/**
 * The README's programs, as they stand there: only the ports are exchanged for free ones. (As a stranger would run the
 * first one, from installed packages: .ci/try-packages.)
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { freePort, hasCurl, Program, root, shell } from "../Program.ts"

const readme = readFileSync(join(root, "README.md"), "utf8")
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp("```" + language + "\\n([\\s\\S]*?)```", "g"))].map(([, block = ""]) => block)

const [program = "", ...clients] = blocks("ts")
const [curl = ""] = blocks("sh")
const [announced = ""] = blocks("text")

/** Below the repository, so that the packages resolve. */
const folder = mkdtempSync(join(root, "test", ".readme-"))
let ports: { readonly http: number; readonly grpc: number }
let server: Program

const write = (name: string, text: string) => {
  const file = join(folder, name)
  writeFileSync(file, text.replaceAll("8000", String(ports.http)).replaceAll("8001", String(ports.grpc)))
  return file
}

/** Polls readiness, as an orchestrator does. */
const ready = async (): Promise<void> => {
  const response = await fetch(`http://localhost:${ports.http}/v2/health/ready`).catch(() => undefined)
  if (response?.status === 200) return
  await Promise.race([new Promise((resolve) => setImmediate(resolve)), failed()])
  return ready()
}

const failed = async () => {
  const { output } = await server.ended
  throw new Error(`The README's program has ended:\n${output}`)
}

beforeAll(async () => {
  ports = { http: await freePort(), grpc: await freePort() }
  server = new Program([write("program.ts", program)])
  await ready()
})

afterAll(async () => {
  server.signal("SIGTERM")
  const { code, output } = await server.ended
  rmSync(folder, { recursive: true })
  expect(output).toMatch(/\nStopping on SIGTERM\nStopped in \d+ ms\n$/)
  expect(code).toBe(0)
})

it.skipIf(!hasCurl)("the first program serves, and curl prints the documented response", async () => {
  expect(await shell(`sh ${write("curl.sh", curl)}`)).toBe(/^# (\{.*\})$/m.exec(curl)?.[1])
})

it("the first program prints what the README shows", () => {
  const expected = announced.replaceAll("8000", String(ports.http)).replaceAll("8001", String(ports.grpc))
  expect(server.output).toBe(expected)
})

it("the clients get their answers, there and here", async () => {
  const launch = program.indexOf("Server.layer(")
  const responses = `
    const here = await Effect.runPromise(program.pipe(Effect.provide(ShoutLive)))
    const there = await Effect.runPromise(
      program.pipe(Effect.provide(Client.layer(Shout, { url: "grpc://localhost:8001" }))),
    )
    console.log(LOUD, here.LOUD, there.LOUD)`
  const file = write("client.ts", [program.slice(0, launch), ...clients, responses].join("\n"))
  const { code, output } = await new Program([file]).ended
  expect(output).toBe("HELLO HELLO HELLO\n")
  expect(code).toBe(0)
})
