/** TLS files: options that are refused at the start, and detection of changes. test/tls.test.ts covers the ports. */
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises"
import { X509Certificate } from "node:crypto"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { ConnectError, createClient, type Transport } from "@connectrpc/connect"
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, Metric, Queue, References, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { authority, type Certificate } from "../../../../test/fixtures/certificate.ts"
import { connection } from "../grpc/GrpcClient.fixture.ts"
import { rawSocket, serve } from "../grpc/GrpcServer.fixture.ts"
import * as Tls from "./Tls.ts"

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-tls-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true })),
)

const write = (file: string, text: string) => Effect.promise(() => writeFile(file, text))

const trusted = authority()
const one = trusted.issue("one")
const two = trusted.issue("two")

/** TLS options for a folder with the certificate. */
const files = (path: string): Tls.Tls => ({ cert: join(path, "tls.crt"), key: join(path, "tls.key") })

const put = Effect.fnUntraced(function* (path: string, { cert, key }: Certificate) {
  yield* write(files(path).cert, cert)
  yield* write(files(path).key, key)
})

describe("at the start", () => {
  const cases: ReadonlyArray<readonly [name: string, files: { readonly [name: string]: string }, expected: RegExp]> = [
    ["a file that is missing", { "tls.key": one.key }, /tls\.crt for TLS on gRPC: ENOENT/],
    ["no certificate", { "tls.crt": "x", "tls.key": one.key }, /tls\.crt .*: the file contains no PEM certificate$/],
    [
      "a certificate that is damaged",
      { "tls.crt": one.cert.replace(/\n.{8}/, "\nAAAAAAAA"), "tls.key": one.key },
      /cannot use .*tls\.crt for TLS on gRPC: /,
    ],
    [
      "a second certificate that is damaged",
      { "tls.crt": one.cert + trusted.cert.replace(/\n.{8}/, "\nAAAAAAAA"), "tls.key": one.key },
      /cannot use .*tls\.crt for TLS on gRPC: /,
    ],
    [
      "no key",
      { "tls.crt": one.cert, "tls.key": "x" },
      /tls\.key .*: the file contains no unencrypted PEM private key$/,
    ],
    [
      "the key of another certificate",
      { "tls.crt": one.cert, "tls.key": two.key },
      /tls\.key .*: the key does not match the certificate in .*tls\.crt$/,
    ],
    [
      "no authority in its file",
      { "tls.crt": one.cert, "tls.key": one.key, "ca.crt": "" },
      /ca\.crt .*: the file contains no PEM certificate$/,
    ],
  ]
  it.effect.each(cases)("%s is an error that names the file", ([, contents, expected]) =>
    Effect.gen(function* () {
      const path = yield* folder
      for (const [name, text] of Object.entries(contents)) yield* write(join(path, name), text)
      const ca = "ca.crt" in contents ? { ca: join(path, "ca.crt") } : {}
      const error = yield* Effect.flip(Tls.load("gRPC", { ...files(path), ...ca }))
      expect(error._tag).toBe("ServeError")
      expect(error.message).toMatch(expected)
    }),
  )

  it.effect("mutual TLS without an authority is an error", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Tls.load("HTTP", { ...files("/"), mutual: true }))
      expect(error.message).toBe("mutual TLS for HTTP requires `ca`, the CA certificates of its clients")
    }),
  )
})

describe("files that change", () => {
  /** Follows the files of a folder; `next` reads them again until there is something new. */
  const following = Effect.fnUntraced(function* (tls: Tls.Tls) {
    const seen = yield* Queue.unbounded<string | undefined>()
    const { credentials, follow } = yield* Tls.load("gRPC", tls)
    expect(String(credentials.cert)).toBe(one.cert)
    yield* follow(({ cert }) => Queue.offerUnsafe(seen, cert?.toString()))
    const next = Effect.raceFirst(
      Queue.take(seen),
      Effect.forever(TestClock.adjust("5 seconds").pipe(Effect.andThen(Effect.promise(macrotask)))),
    )
    return { next, seen }
  })
  const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve))

  const changes: ReadonlyArray<readonly [name: string, change: (path: string) => Effect.Effect<unknown>]> = [
    ["are written", (path) => put(path, two)],
    [
      "are replaced by renaming",
      (path) =>
        Effect.promise(async () => {
          for (const [name, text] of Object.entries({ "tls.crt": two.cert, "tls.key": two.key })) {
            await writeFile(join(path, `${name}.new`), text)
            await rename(join(path, `${name}.new`), join(path, name))
          }
        }),
    ],
  ]
  it.effect.each(changes)("%s", ([, change]) =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* put(path, one)
      const { next } = yield* following(files(path))
      yield* change(path)
      expect(yield* next).toBe(two.cert)
    }),
  )

  it.effect("are behind a link that is swapped, as in a Kubernetes secret", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const data = (name: string, certificate: Certificate) =>
        Effect.promise(() => mkdir(join(path, name))).pipe(Effect.andThen(put(join(path, name), certificate)))
      yield* data("..one", one)
      yield* Effect.promise(() => symlink("..one", join(path, "..data")))
      yield* Effect.promise(() => symlink("..data/tls.crt", files(path).cert))
      yield* Effect.promise(() => symlink("..data/tls.key", files(path).key))
      const { next } = yield* following(files(path))
      yield* data("..two", two)
      yield* Effect.promise(() => symlink("..two", join(path, "..data_tmp")))
      yield* Effect.promise(() => rename(join(path, "..data_tmp"), join(path, "..data")))
      expect(yield* next).toBe(two.cert)
    }),
  )

  it.effect("are broken: the certificates stay, and an error is logged once", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* put(path, one)
      const errors = yield* Queue.unbounded<unknown>()
      const log = Logger.make(({ logLevel, message }) => {
        if (logLevel === "Error") Queue.offerUnsafe(errors, String(message))
      })
      yield* Effect.gen(function* () {
        const { next, seen } = yield* following(files(path))
        const error = Effect.raceFirst(Queue.take(errors), next)
        yield* write(files(path).cert, "broken")
        expect(yield* error).toMatch(/tls\.crt .* no PEM certificate; gRPC keeps its current certificates$/)
        yield* Effect.promise(() => rm(files(path).cert))
        expect(yield* error).toMatch(/ENOENT/)
        for (let index = 0; index < 10; index++) {
          yield* TestClock.adjust("5 seconds")
          yield* Effect.promise(() => readFile(files(path).key))
        }
        // The second is not yet there: the key is the first one's.
        yield* put(path, two)
        expect(yield* next).toBe(two.cert)
        expect(yield* Queue.size(seen)).toBe(0)
        const later = yield* Queue.clear(errors)
        for (const message of later) expect(message).toMatch(/it is not the key of the certificate/)
      }).pipe(Effect.provide(Logger.layer([log])), Effect.provideService(References.MinimumLogLevel, "Info"))
    }),
  )
})

describe("the validity of a certificate", () => {
  /** Loads the certificate at a time, in days from now. Returns warnings and the metric. */
  const loadAt = Effect.fnUntraced(function* (days: number) {
    const path = yield* folder
    yield* put(path, one)
    yield* TestClock.setTime(Date.now() + days * 86_400_000)
    const warnings: Array<string> = []
    const log = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") warnings.push(String(message))
    })
    yield* Effect.provide(Tls.load("gRPC", files(path)), Logger.layer([log]))
    const expiry = (yield* Metric.snapshot).find(({ id }) => id === "nereid_tls_certificate_expiry_seconds")
    return { path, warnings, expiry }
  })
  const { validToDate, validFromDate } = new X509Certificate(one.cert)

  it.effect("is a metric, and no warning while it lasts", () =>
    Effect.gen(function* () {
      const { warnings, expiry } = yield* loadAt(0)
      expect(warnings).toEqual([])
      expect(expiry).toMatchObject({ attributes: { port: "gRPC" }, state: { value: validToDate.getTime() / 1000 } })
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
  )

  it.effect("is logged once it has expired", () =>
    Effect.gen(function* () {
      const { path, warnings } = yield* loadAt(10_000)
      const text = `The certificate for gRPC in ${path}/tls.crt has expired on ${validToDate.toISOString()}`
      expect(warnings).toEqual([text])
    }),
  )

  it.effect("is logged before it begins", () =>
    Effect.gen(function* () {
      const { path, warnings } = yield* loadAt(-10_000)
      const text = `The certificate for gRPC in ${path}/tls.crt is not valid before ${validFromDate.toISOString()}`
      expect(warnings).toEqual([text])
    }),
  )
})

describe("cipher suites of TLS 1.2", () => {
  /** Name of the agreed suite, or the error. */
  const handshake = (port: number, ciphers: string, version: "TLSv1.1" | "TLSv1.2" | "TLSv1.3" = "TLSv1.2") =>
    Effect.callback<string>((resume) => {
      const options = { port, host: "127.0.0.1", ca: trusted.cert, servername: "localhost" }
      // Level 0 allows the client what it is to be refused.
      const offered = { ciphers: `${ciphers}:@SECLEVEL=0`, minVersion: version, maxVersion: version }
      const socket = connectTls({ ...options, ...offered }, () => {
        resume(Effect.succeed(socket.getCipher().standardName))
        socket.destroy()
      })
      socket.on("error", ({ message }) => resume(Effect.succeed(message)))
    })

  it.live("have forward secrecy and no CBC", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* put(path, one)
      const { port } = yield* serve({ tls: files(path) })
      for (const suite of ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"]) {
        expect(yield* handshake(port, suite)).toMatch(/^TLS_ECDHE_ECDSA_WITH_/)
      }
      for (const suite of ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "AES128-GCM-SHA256", "AES256-SHA"]) {
        expect(yield* handshake(port, suite), suite).toMatch(/handshake failure/)
      }
      expect(yield* handshake(port, "DEFAULT", "TLSv1.1")).toMatch(/alert protocol version|no protocols available/)
      expect(yield* handshake(port, "DEFAULT", "TLSv1.3")).toMatch(/^TLS_(AES|CHACHA)/)
    }),
  )

  it.effect("come with changed certificates, too", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* put(path, one)
      const { credentials, follow } = yield* Tls.load("gRPC", files(path))
      const changed = yield* Queue.unbounded<Tls.Credentials>()
      yield* follow((later) => Queue.offerUnsafe(changed, later))
      yield* put(path, two)
      const tick = TestClock.adjust("5 seconds").pipe(
        Effect.andThen(Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))),
      )
      const later = yield* Effect.raceFirst(Queue.take(changed), Effect.forever(tick))
      expect(later.ciphers).toBe(credentials.ciphers)
      expect(later.minVersion).toBe("TLSv1.2")
    }),
  )
})

/** Transports to a port with TLS. test/tls.test.ts covers grpc-js and our own client. */
const transports: {
  readonly [name: string]: (baseUrl: string, tls: ClientTls) => Effect.Effect<Transport, never, Scope.Scope>
} = {
  gRPC: (baseUrl, tls) => Effect.map(connection(baseUrl, tls), createGrpcTransport),
  "gRPC-Web": (baseUrl, tls) => Effect.map(connection(baseUrl, tls), createGrpcWebTransport),
  "gRPC-Web over HTTP/1.1": (baseUrl, nodeOptions) =>
    Effect.sync(() => createGrpcWebTransport({ baseUrl, nodeOptions, httpVersion: "1.1" })),
  Connect: (baseUrl, tls) => Effect.map(connection(baseUrl, tls), createConnectTransport),
  "Connect over HTTP/1.1, with GET": (baseUrl, nodeOptions) =>
    Effect.sync(() => createConnectTransport({ baseUrl, nodeOptions, httpVersion: "1.1", useHttpGet: true })),
}

interface ClientTls {
  readonly ca: string
  readonly cert?: string
  readonly key?: string
}

it.live.each(Object.entries(transports))("%s over TLS, and mutual", ([, make]) =>
  Effect.gen(function* () {
    const path = yield* folder
    yield* put(path, one)
    const ca = join(path, "ca.crt")
    yield* write(ca, trusted.cert)
    const live = Effect.fnUntraced(function* (port: number, own: Partial<Certificate>) {
      const transport = yield* make(`https://localhost:${port}`, { ca: trusted.cert, ...own })
      return yield* Effect.promise(async () => {
        try {
          return (await createClient(GRPCInferenceService, transport).serverLive({})).live
        } catch (error) {
          return ConnectError.from(error).code
        }
      })
    })
    const open = yield* serve({ tls: files(path) })
    expect(yield* live(open.port, {})).toBe(true)
    const mutual = yield* serve({ tls: { ...files(path), ca, mutual: true } })
    expect(yield* live(mutual.port, two)).toBe(true)
    expect(yield* live(mutual.port, {})).not.toBe(true)
    expect(yield* live(mutual.port, authority("other").issue("stranger"))).not.toBe(true)
  }),
)

it.live("a connection that does not shake hands in time is closed", () =>
  Effect.gen(function* () {
    const path = yield* folder
    yield* put(path, one)
    const { port } = yield* serve({ tls: files(path), greetingTimeoutMillis: 20 })
    expect(yield* rawSocket(port, "")).toBe("")
  }),
)
