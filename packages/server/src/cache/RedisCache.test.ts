/**
 * A cache in Redis. A fake server on a socket produces faults; a real server, where the machine has one, proves the
 * protocol. Every lookup ends within its timeout.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { RedisCache, type RedisCacheOptions } from "./RedisCache.ts"

/** Lines of the log. `line` waits for one with a given beginning. */
class Lines {
  readonly all: Array<string> = []
  readonly #waiting: Array<readonly [string, () => void]> = []
  readonly add = (line: string): void => {
    this.all.push(line)
    for (const [start, resolve] of this.#waiting) if (line.startsWith(start)) resolve()
  }

  async line(start: string): Promise<void> {
    if (this.all.some((line) => line.startsWith(start))) return
    await new Promise<void>((resolve) => this.#waiting.push([start, resolve]))
  }
}

const opened = (port: number, options: Partial<RedisCacheOptions> = {}, address: object = {}) => {
  const lines = new Lines()
  const cache = new RedisCache(
    { address: { host: "127.0.0.1", port, ...address }, timeout: 2000, ...options },
    { info: lines.add, warning: lines.add },
  )
  onTestFinished(() => cache.close())
  return { cache, lines }
}

const get = (cache: RedisCache, key: string): Promise<string | undefined> =>
  new Promise((resolve) => cache.get(key, (value) => resolve(value && Buffer.from(value).toString())))

/** Returns the reply to a command; undefined sends no reply. */
type Answers = (command: ReadonlyArray<string>, socket: Socket) => string | undefined

const fake = async (answers: Answers) => {
  const commands: Array<ReadonlyArray<string>> = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let text = ""
    socket.on("error", () => {})
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      for (;;) {
        const [head = "", count = ""] = /^\*(\d+)\r\n/.exec(text) ?? []
        const parts: Array<string> = []
        let offset = head.length
        for (let part = 0; part < Number(count); part++) {
          const [length = "", size = ""] = /^\$(\d+)\r\n/.exec(text.slice(offset)) ?? []
          if (length === "" || text.length < offset + length.length + Number(size) + 2) break
          parts.push(text.slice(offset + length.length, offset + length.length + Number(size)))
          offset += length.length + Number(size) + 2
        }
        if (head === "" || parts.length < Number(count)) return
        text = text.slice(offset)
        commands.push(parts)
        const answer = parts[0] === "PING" ? "+PONG\r\n" : answers(parts, socket)
        if (answer !== undefined) socket.write(answer)
      }
    })
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  return { port: typeof address === "object" && address !== null ? address.port : 0, commands, sockets, server }
}

const connected = "Responses are shared"
const failed = "Responses are not shared"

it("gets a value, a miss and an error, and sets with an expiry", async () => {
  const { port, commands } = await fake(([name, key]) =>
    name === "SET" ? "+OK\r\n" : key === "a" ? "$3\r\nx\r\n\r\n" : key === "b" ? "$-1\r\n" : "-LOADING later\r\n",
  )
  const { cache, lines } = opened(port, { expiry: 60 })
  await lines.line(connected)
  cache.set("a", Uint8Array.of(120))
  expect(await Promise.all(["a", "b", "c", "a"].map((key) => get(cache, key)))).toEqual([
    "x\r\n",
    undefined,
    undefined,
    "x\r\n",
  ])
  expect(commands).toContainEqual(["SET", "a", "x", "EX", "60"])
})

it("reads replies that arrive byte by byte", async () => {
  const { port } = await fake((_, socket) => {
    for (const character of "$5\r\nhello\r\n") socket.write(character)
    return undefined
  })
  const { cache, lines } = opened(port)
  await lines.line(connected)
  expect(await Promise.all([get(cache, "a"), get(cache, "b")])).toEqual(["hello", "hello"])
})

it("authenticates and selects the database before any lookup", async () => {
  const { port, commands } = await fake(() => "+OK\r\n")
  const { lines } = opened(port, {}, { user: "u", password: "p", database: 3 })
  await lines.line(connected)
  expect(commands).toEqual([["AUTH", "u", "p"], ["SELECT", "3"], ["PING"]])
})

it("a refused password logs one line, and every lookup misses at once", async () => {
  const { port } = await fake(() => "-WRONGPASS invalid\r\n")
  const { cache, lines } = opened(port, {}, { password: "p" })
  await lines.line(failed)
  expect(await get(cache, "a")).toBeUndefined()
  expect(lines.all).toEqual([expect.stringContaining("failed: WRONGPASS invalid")])
})

it("lookups at a server that does not answer miss after the timeout, and later ones miss at once", async () => {
  const { port, commands } = await fake(() => undefined)
  const { cache, lines } = opened(port, { timeout: 20 })
  await lines.line(connected)
  expect(await Promise.all([get(cache, "a"), get(cache, "b")])).toEqual([undefined, undefined])
  expect(lines.all[1]).toContain("no reply within 20 ms")
  const sent = commands.length
  expect(await get(cache, "c")).toBeUndefined()
  expect(commands).toHaveLength(sent)
})

it("a lookup does not wait for a server that accepts connections and sends nothing", async () => {
  const silent = createServer((socket) => socket.on("error", () => {}))
  await once(silent.listen(0, "127.0.0.1"), "listening")
  onTestFinished(() => void silent.close())
  const address = silent.address()
  const { cache, lines } = opened(typeof address === "object" ? (address?.port ?? 0) : 0, { connectTimeout: 20 })
  expect(await get(cache, "a")).toBeUndefined()
  await lines.line(failed)
  expect(lines.all).toEqual([expect.stringContaining("not connected within 20 ms")])
})

it.each([
  ["a reply of another protocol", "HTTP/1.1 400 Bad Request\r\n", "unexpected reply"],
  ["a value that is too large", `$${2 ** 40}\r\n`, "a value has 1099511627776 bytes"],
  ["a line without end", "+".padEnd(5000, "x"), "a line of a reply is too long"],
])("%s makes the lookup miss, and ends the connection", async (_, answer, reason) => {
  const { port } = await fake(() => answer)
  const { cache, lines } = opened(port)
  await lines.line(connected)
  expect(await get(cache, "a")).toBeUndefined()
  expect(lines.all[1]).toContain(reason)
})

it("lookups miss after the connection breaks, until the cache has connected again", async () => {
  const { port, sockets } = await fake(() => "$2\r\nok\r\n")
  const { cache, lines } = opened(port)
  await lines.line(connected)
  for (const socket of sockets) socket.destroy()
  await lines.line(failed)
  lines.all.length = 0
  expect(await get(cache, "a")).toBeUndefined()
  await lines.line(connected)
  expect(await get(cache, "a")).toBe("ok")
})

it("a lookup without a server misses at once", async () => {
  const { port, server } = await fake(() => undefined)
  await new Promise((resolve) => server.close(resolve))
  const { cache, lines } = opened(port)
  expect(await get(cache, "a")).toBeUndefined()
  await lines.line(failed)
  expect(await get(cache, "a")).toBeUndefined()
  expect(lines.all).toHaveLength(1)
})

it("a cancelled lookup calls nothing, and others get their own replies", async () => {
  const { port } = await fake(([, key = ""]) => `$${key.length}\r\n${key}\r\n`)
  const { cache, lines } = opened(port)
  await lines.line(connected)
  const called: Array<string> = []
  cache.get("gone", () => called.push("gone"))()
  expect(await get(cache, "b")).toBe("b")
  expect(called).toEqual([])
})

it("keys differ with the prefix and with every part", () => {
  const { cache } = opened(1)
  const { cache: other } = opened(1, { prefix: "other" })
  const keys = [["ab", "c"], ["a", "bc"], ["abc"], [Uint8Array.of(1), "c"], ["a", "bc", ""]].map((parts) =>
    cache.keyOf(parts),
  )
  expect(new Set(keys).size).toBe(keys.length)
  expect(keys[0]).toMatch(/^nereid:[\w-]{43}$/)
  expect(other.keyOf(["abc"])).toMatch(/^other:/)
})

const program = ["valkey-server", "redis-server"].find((name) => spawnSync(name, ["--version"]).status === 0)

if (program === undefined)
  console.log("Skipped, no real server has been tested: there is no valkey-server or redis-server")

describe.skipIf(program === undefined)("with the real server", () => {
  /** Starts the server on a socket in a new directory. A proxy makes a port of it that no other process uses. */
  const real = async () => {
    const folder = mkdtempSync(join(tmpdir(), "nereid-redis-"))
    const path = join(folder, "redis.sock")
    const child = spawn(program ?? "", ["--port", "0", "--unixsocket", path, "--save", "", "--requirepass", "secret"], {
      cwd: folder,
    })
    onTestFinished(async () => {
      child.kill("SIGKILL")
      await once(child, "exit")
      rmSync(folder, { recursive: true })
    })
    let output = ""
    for await (const chunk of child.stdout) {
      output += String(chunk)
      if (/ready to accept connections/i.test(output)) break
    }
    const { connect } = await import("node:net")
    const server = createServer((socket) => {
      const upstream = connect(path)
      socket.pipe(upstream).pipe(socket)
      for (const one of [socket, upstream]) one.on("error", () => socket.destroy())
    })
    await once(server.listen(0, "127.0.0.1"), "listening")
    onTestFinished(() => void server.close())
    const address = server.address()
    return { port: typeof address === "object" ? (address?.port ?? 0) : 0, child }
  }

  it("stores and finds responses of megabytes, and lookups miss once the server is stopped", async () => {
    const { port, child } = await real()
    const { cache, lines } = opened(port, {}, { password: "secret", database: 2 })
    await lines.line(connected)
    const large = Buffer.alloc(4_000_000, "large")
    expect(await get(cache, "large")).toBeUndefined()
    cache.set("large", large)
    cache.set("empty", new Uint8Array())
    expect(await get(cache, "large")).toBe(large.toString())
    expect(await get(cache, "empty")).toBe("")
    child.kill("SIGSTOP")
    const { cache: impatient, lines: others } = opened(port, { connectTimeout: 50 }, { password: "secret" })
    await others.line(failed)
    expect(await get(impatient, "large")).toBeUndefined()
    child.kill("SIGCONT")
  })
})
