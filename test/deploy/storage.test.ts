/**
 * Repositories in object stores that others have written, as servers read them: the same cases for each store, with a
 * gate in front of it for the faults. The tests beside the code have more cases, against stores of the tests.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Logger, Scope } from "effect"
import { open } from "../../packages/repository/src/Repository.fixture.ts"
import { plus } from "../fixtures/repository.ts"
import { type AwsKey, type Emulator, type EmulatorProgram, emulators } from "./StorageEmulators.ts"
import { type Fault, type GateRequest, StoreGate } from "./StoreGate.ts"

for (const { name, isMissing } of emulators) {
  if (isMissing) console.log(`Skipped, its program is not there: ${name}`)
}

/** An object that is read in several ranges: a file of the model that nothing reads. */
const large = new Uint8Array(1_000_000).map((_, index) => (index * 7919) >> 3)
const rangeBytes = 300_000

const rangeOf = ({ headers }: GateRequest): string => String(headers["x-ms-range"] ?? headers.range)

/** Hugging Face answers a request for a file with the address of its contents. */
const isRead = ({ method, path }: GateRequest): boolean => method === "GET" && !path.includes("/resolve/")

const isLarge = (request: GateRequest): boolean => isRead(request) && request.path.includes("large.bin")

const isContent = (request: GateRequest): boolean => isRead(request) && /model\.onnx|large\.bin/.test(request.path)

describe.each(emulators)("$name", ({ isMissing, start }: EmulatorProgram) => {
  let emulator: Emulator
  let gate: StoreGate
  let cacheDirectory: string
  let scope: Scope.Closeable
  let repository = 0

  beforeAll(async () => {
    if (!isMissing) emulator = await start()
  })
  afterAll(() => emulator?.[Symbol.asyncDispose]())

  beforeEach(async () => {
    if (isMissing) return
    // Each test has a repository of its own in the bucket.
    repository += 1
    gate = await StoreGate.start(emulator.port)
    cacheDirectory = mkdtempSync(join(tmpdir(), "nereid-storage-"))
    scope = Effect.runSync(Scope.make())
  })
  afterEach(async () => {
    if (isMissing) return
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await gate[Symbol.asyncDispose]()
    rmSync(cacheDirectory, { recursive: true })
  })

  const put = (key: string, content: Uint8Array) => emulator.put(`${repository}/${key}`, content)

  const messages: Array<string> = []
  const log = Logger.layer([Logger.make(({ message }) => void messages.push(String(message)))])

  type Environment = Readonly<Record<string, string>>

  /** Opens the repository as a server does. */
  const serve = (control: "none" | "explicit" | "poll" = "explicit", variables: Environment = {}, within = scope) =>
    open(
      { path: `${emulator.url(gate.port)}/${repository}` },
      {
        control,
        load: [],
        pollInterval: "200 millis",
        storage: { cacheDirectory, rangeBytes, environment: { ...emulator.environment(gate.port), ...variables } },
      },
    ).pipe(Scope.provide(within), Effect.provide(log), Effect.runPromise)

  const run = Effect.runPromise

  it.skipIf(isMissing)("lists all models, and downloads only those that are loaded", async () => {
    await put("first/1/model.onnx", plus(1))
    await put("second/1/model.onnx", plus(2))
    await put("with space & sign+/1/model.onnx", plus(3))
    const { call, load, index } = await serve()
    expect(index().map(({ name }) => name)).toEqual(["first", "second", "with space & sign+"])
    expect(gate.requests.filter(isContent)).toEqual([])
    await run(load("second"))
    expect(await run(call("second"))).toBe(2)
    expect(gate.requests.filter(isContent)).toHaveLength(1)
    await run(load("with space & sign+"))
    expect(await run(call("with space & sign+"))).toBe(3)
  })

  it.skipIf(isMissing)("loads all models at the start, a large file in ranges", async () => {
    await put("m/1/model.onnx", plus(7))
    await put("m/large.bin", large)
    const { call } = await serve("none")
    expect(await run(call("m"))).toBe(7)
    expect(gate.requests.filter(isLarge).map(rangeOf).toSorted()).toEqual([
      "bytes=0-299999",
      "bytes=300000-599999",
      "bytes=600000-899999",
      "bytes=900000-999999",
    ])
  })

  it.skipIf(isMissing)("follows a change by polling, and reads nothing else again", async () => {
    await put("m/1/model.onnx", plus(1))
    await put("other/1/model.onnx", plus(5))
    const { call } = await serve("poll")
    expect(await run(call("m"))).toBe(1)
    await put("m/2/model.onnx", plus(2))
    await expect.poll(() => run(call("m"))).toBe(2)
    await put("m/2/model.onnx", plus(3))
    await expect.poll(() => run(call("m"))).toBe(3)
    expect(gate.requests.filter(isContent).filter(({ path }) => path.includes("other"))).toHaveLength(1)
  })

  it.skipIf(isMissing)(
    "starts again from the cache: with the store without a download, and without the store",
    async () => {
      await put("m/1/model.onnx", plus(4))
      const first = Effect.runSync(Scope.make())
      await serve("none", {}, first)
      await run(Scope.close(first, Exit.void))
      const downloads = gate.requests.filter(isContent).length
      const second = Effect.runSync(Scope.make())
      expect(await run((await serve("none", {}, second)).call("m"))).toBe(4)
      await run(Scope.close(second, Exit.void))
      expect(gate.requests.filter(isContent)).toHaveLength(downloads)
      gate.fault = () => ({ type: "unreachable" })
      expect(await run((await serve("none")).call("m"))).toBe(4)
      expect(messages.join("\n")).toContain("is served from the cache")
    },
  )

  it.skipIf(isMissing)("continues a download where its connection ended", async () => {
    await put("m/1/model.onnx", plus(7))
    await put("m/large.bin", large)
    let cuts = 0
    gate.fault = (request): Fault => (isLarge(request) && cuts++ < 2 ? { type: "cut", after: 100_000 } : undefined)
    const { call, load } = await serve()
    await run(load("m"))
    expect(await run(call("m"))).toBe(7)
    const beginnings = gate.requests.filter(isLarge).map((request) => Number(/=(\d+)-/.exec(rangeOf(request))?.[1]))
    expect(beginnings).toHaveLength(6)
    expect(beginnings.filter((at) => at % rangeBytes === 100_000)).toHaveLength(2)
  })

  it.skipIf(isMissing)("continues a download after the end of its process", async () => {
    await put("m/1/model.onnx", plus(7))
    await put("m/large.bin", large)
    const partial = join(cacheDirectory, "partial")
    const recorded = () =>
      readdirSync(partial).flatMap((name) => (name.endsWith(".ranges") ? [join(partial, name)] : []))
    const complete = () => recorded().flatMap((path) => JSON.parse(readFileSync(path, "utf8")).complete)
    const after = expect.poll(complete).toHaveLength(2)
    gate.fault = (request): Fault =>
      isLarge(request) && /=(6|9)00000-/.test(rangeOf(request)) ? { type: "refused", status: 400, after } : undefined
    const first = Effect.runSync(Scope.make())
    const { load } = await serve("explicit", {}, first)
    expect(Exit.isFailure(await Effect.runPromiseExit(load("m")))).toBe(true)
    await run(Scope.close(first, Exit.void))
    gate.fault = () => undefined
    const from = gate.requests.length
    const again = await serve()
    await run(again.load("m"))
    expect(await run(again.call("m"))).toBe(7)
    const ranges = gate.requests.slice(from).filter(isLarge).map(rangeOf)
    expect(ranges.toSorted()).toEqual(["bytes=600000-899999", "bytes=900000-999999"])
  })

  it.skipIf(isMissing)("downloads again what arrived with a wrong checksum, and refuses what stays wrong", async () => {
    await put("m/1/model.onnx", plus(7))
    let count = 0
    gate.fault = (request): Fault => (isContent(request) && count++ < 1 ? { type: "damaged" } : undefined)
    const { call, load } = await serve()
    await run(load("m"))
    expect(await run(call("m"))).toBe(7)
    await put("wrong/1/model.onnx", plus(8))
    gate.fault = (request): Fault => (isContent(request) ? { type: "damaged" } : undefined)
    const failure = await run(Effect.flip(load("wrong")))
    expect(failure.message).toMatch(
      /ChecksumMismatch, error message: its (md5|crc32c?|sha\d+) checksum is \S+, expected/,
    )
    expect(readdirSync(join(cacheDirectory, "partial"))).toEqual([])
  })

  it.skipIf(isMissing)("keeps its models, and says so, while the store refuses its credentials", async () => {
    await put("m/1/model.onnx", plus(7))
    const { call } = await serve("poll")
    gate.fault = () => ({ type: "refused", status: 403 })
    messages.length = 0
    await expect.poll(() => messages.join("\n")).toContain("failed to poll model repository")
    expect(messages.join("\n")).toContain("Check account credentials")
    expect(await run(call("m"))).toBe(7)
    gate.fault = () => undefined
    await expect.poll(() => messages.join("\n")).toContain("answers again")
  })

  it.skipIf(isMissing)("serves what arrives slowly", async () => {
    await put("m/1/model.onnx", plus(7))
    await put("m/large.bin", large)
    gate.fault = () => ({ type: "slow", pieces: 10 })
    const { call } = await serve("none")
    expect(await run(call("m"))).toBe(7)
  })

  it.skipIf(isMissing)("repeats what the store answers with an error, five times", async () => {
    await put("m/1/model.onnx", plus(7))
    const failing = (times: number, status: number) => {
      const counts = new Map<string, number>()
      return (request: GateRequest): Fault => {
        const count = (counts.get(request.path) ?? 0) + 1
        counts.set(request.path, count)
        return count <= times ? { type: "refused", status } : undefined
      }
    }
    gate.fault = failing(2, 500)
    const { call, load } = await serve()
    await run(load("m"))
    expect(await run(call("m"))).toBe(7)
    await put("other/1/model.onnx", plus(8))
    const isAsked = (request: GateRequest) => request.method === "GET" && request.path.includes("model.onnx")
    const always = failing(Infinity, 503)
    gate.fault = (request) => (isAsked(request) ? always(request) : undefined)
    const from = gate.requests.length
    const failure = await run(Effect.flip(load("other")))
    expect(failure.message).toMatch(/Failed to get object at .*\/other due to exception: .*503/)
    expect(gate.requests.slice(from).filter(isAsked)).toHaveLength(5)
  })

  it.skipIf(isMissing)("reads one state of a model that changes meanwhile", async () => {
    await put("m/1/model.onnx", plus(7))
    await put("m/large.bin", large)
    let changed: Promise<unknown> | undefined
    gate.fault = (request): Fault => {
      if (!isLarge(request)) return undefined
      changed ??= put("m/1/model.onnx", plus(8)).then(() =>
        put(
          "m/large.bin",
          large.map((byte) => byte ^ 1),
        ),
      )
      return { type: "late", after: changed }
    }
    const { call, load } = await serve()
    await run(load("m"))
    // Hugging Face has all commits, the others have the last state alone.
    const first = emulator.url(0).startsWith("hf:") ? 7 : 8
    expect(await run(call("m"))).toBe(first)
    await run(load("m"))
    expect(await run(call("m"))).toBe(8)
  })

  it.skipIf(isMissing)("refuses a start with credentials that have expired", async () => {
    await put("m/1/model.onnx", plus(7))
    const variables = await emulator.expired?.()
    if (variables === undefined) gate.fault = () => ({ type: "refused", status: 401 })
    messages.length = 0
    const { isLive } = await serve("none", variables)
    expect(isLive()).toBe(false)
    expect(messages.join("\n")).toMatch(/Unable to create .* client\. Check account credentials\. Exception: /)
    for (const secret of Object.values(variables ?? {}).filter((value) => value !== "")) {
      expect(messages.join("\n")).not.toContain(secret)
    }
    gate.fault = () => undefined
    expect(await run((await serve("none")).call("m"))).toBe(7)
  })

  it.skipIf(isMissing)("gets another token when the store refuses an expired one", async (context) => {
    if (!emulator.url(0).startsWith("gs:")) return context.skip("the other stores have no tokens here")
    await put("m/1/model.onnx", plus(7))
    const file = join(cacheDirectory, "credentials.json")
    const account = { type: "authorized_user", client_id: "id", client_secret: "secret", refresh_token: "refresh" }
    writeFileSync(file, JSON.stringify({ ...account, token_uri: `http://127.0.0.1:${gate.port}/token` }))
    let issued = 0
    let valid = 1
    gate.fault = ({ path, headers }): Fault => {
      if (path === "/token")
        return { type: "reply", body: JSON.stringify({ access_token: `t${++issued}`, expires_in: 3600 }) }
      return headers.authorization === `Bearer t${valid}` ? undefined : { type: "refused", status: 401 }
    }
    const { call, load } = await serve("explicit", { GOOGLE_APPLICATION_CREDENTIALS: file })
    await run(load("m"))
    await put("m/2/model.onnx", plus(8))
    valid = 2
    await run(load("m"))
    expect(await run(call("m"))).toBe(8)
    expect(issued).toBe(2)
  })

  it.skipIf(isMissing)("gets other credentials when a key was revoked", async (context) => {
    const { keys } = emulator
    if (keys === undefined) return context.skip("only moto has keys that can be revoked")
    await put("m/1/model.onnx", plus(7))
    const file = join(cacheDirectory, "credentials")
    const write = ({ id, secret }: AwsKey) =>
      writeFileSync(file, `[default]\naws_access_key_id = ${id}\naws_secret_access_key = ${secret}\n`)
    let key = await keys.issue()
    write(key)
    const variables = { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "", AWS_SHARED_CREDENTIALS_FILE: file }
    const { call, load } = await serve("explicit", variables)
    await run(load("m"))
    expect(await run(call("m"))).toBe(7)
    await keys.revoke(key)
    key = await keys.issue()
    write(key)
    await put("m/2/model.onnx", plus(8))
    await run(load("m"))
    expect(await run(call("m"))).toBe(8)
    // Without others, a load says so, and the model stays.
    await keys.revoke(key)
    await put("m/3/model.onnx", plus(9))
    messages.length = 0
    await Effect.runPromiseExit(load("m").pipe(Effect.provide(log)))
    expect(messages.join("\n")).toContain("InvalidAccessKeyId")
    expect(await run(call("m"))).toBe(8)
  })
})
