/**
 * TLS certificates of a port, read from files, and reloaded when their contents change. HttpListener.ts uses them.
 *
 * The files are read again every few seconds and compared. That also sees what a watch of a file misses: a replacement
 * by renaming, the swapped link of a Kubernetes secret, a file system over a network.
 */
import type { KeyObject, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import type { SecureContextOptions } from "node:tls"
import { Clock, Effect, Metric, type Scope } from "effect"
import { ServeError } from "../error/ServeError.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Paths of PEM files. Changed files are reloaded for new connections; open connections keep their certificates. */
export interface Tls {
  /** Certificate chain of the server, its own certificate first. */
  readonly cert: string
  /** Private key of the certificate, unencrypted. */
  readonly key: string
  /** Certificate authorities of client certificates. Required for `mutual`, and unused otherwise. */
  readonly ca?: string
  /** Requires a client certificate signed by one of `ca`. Default false. */
  readonly mutual?: boolean
}

/** Credentials for Node's TLS. */
export type Credentials = Pick<SecureContextOptions, "cert" | "key" | "ca" | "ciphers" | "minVersion">

export interface TlsFiles {
  readonly credentials: Credentials
  /** Calls `use` with the new credentials after each change of the files, until its scope closes. */
  readonly follow: (use: (credentials: Credentials) => void) => Effect.Effect<void, never, Scope.Scope>
}

/**
 * Cipher suites with forward secrecy and authenticated encryption: those of TLS 1.3, and of TLS 1.2 without CBC and
 * without a key exchange by RSA (RFC 9325, 4.2).
 */
const ciphers = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":")

const expiry = Metric.gauge("nereid_tls_certificate_expiry_seconds", {
  description: "Time at which the certificate of a port expires, in seconds since 1970",
})

/** Interval between reads of the files. */
const interval = "5 seconds"

/** Loads the files. `port` names the listener in messages. */
export const load = Effect.fnUntraced(function* (port: string, tls: Tls): Effect.fn.Return<TlsFiles, ServeError> {
  if (tls.mutual === true && tls.ca === undefined) {
    const message = `mutual TLS for ${port} requires \`ca\`, the CA certificates of its clients`
    return yield* new ServeError({ message })
  }
  let known = yield* read(port, tls)
  const credentials = yield* parse(port, tls, known)

  const check = Effect.fnUntraced(function* (use: (credentials: Credentials) => void) {
    const now = yield* read(port, tls)
    if (isEqual(now, known)) return
    known = now
    use(yield* parse(port, tls, now))
    yield* Effect.logInfo(`Reloaded the certificates for ${port} from ${tls.cert}`)
  })
  const follow: TlsFiles["follow"] = (use) => {
    let lastError = ""
    const tick = check(use).pipe(
      Effect.andThen(Effect.sync(() => (lastError = ""))),
      Effect.catch(({ message }) => {
        // Logs an error once, not at each read.
        if (message === lastError) return Effect.void
        lastError = message
        return Effect.logError(`${message}; ${port} keeps its current certificates`)
      }),
    )
    return Effect.sleep(interval).pipe(Effect.andThen(tick), Effect.forever, Effect.forkScoped, Effect.asVoid)
  }
  return { credentials, follow }
})

/** Contents of the certificate files. */
interface Contents {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca: Buffer | undefined
}

const read = (port: string, { cert, key, ca }: Tls): Effect.Effect<Contents, ServeError> =>
  Effect.all({
    cert: readOne(port, cert),
    key: readOne(port, key),
    ca: ca === undefined ? Effect.undefined : readOne(port, ca),
  })

const readOne = (port: string, file: string): Effect.Effect<Buffer, ServeError> =>
  Effect.tryPromise({ try: () => readFile(file), catch: (error) => refuse(port, file, error) })

const isEqual = (one: Contents, other: Contents): boolean =>
  one.cert.equals(other.cert) && one.key.equals(other.key) && (one.ca?.equals(other.ca ?? empty) ?? true)

const empty = Buffer.alloc(0)

const parse = (port: string, tls: Tls, { cert, key, ca }: Contents): Effect.Effect<Credentials, ServeError> =>
  Effect.gen(function* () {
    const attempt = <A>(file: string, run: () => A) =>
      Effect.try({ try: run, catch: (error) => refuse(port, file, error) })
    const certificate = yield* attempt(tls.cert, () => certificates(cert))
    const privateKey = yield* attempt(tls.key, () => unencrypted(key))
    if (certificate?.checkPrivateKey(privateKey) !== true) {
      return yield* refuse(port, tls.key, `the key does not match the certificate in ${tls.cert}`)
    }
    if (ca !== undefined && tls.ca !== undefined) yield* attempt(tls.ca, () => certificates(ca))
    const suites = { ciphers, minVersion: "TLSv1.2" } as const
    const credentials = { cert, key, ...suites, ...(tls.mutual === true && ca !== undefined ? { ca } : {}) }
    // Loaded here, because it would add 20 ms to the start of a server without TLS.
    const { createSecureContext } = process.getBuiltinModule("node:tls")
    yield* attempt(tls.cert, () => createSecureContext(credentials))
    yield* reportValidity(port, tls.cert, certificate)
    return credentials
  })

/** Logs a certificate that clients refuse now, and sets the metric of its expiry. */
const reportValidity = Effect.fnUntraced(function* (port: string, file: string, certificate: X509Certificate) {
  const { validFromDate, validToDate } = certificate
  const now = yield* Clock.currentTimeMillis
  yield* Metric.update(Metric.withAttributes(expiry, { port }), Math.floor(validToDate.getTime() / 1000))
  const subject = `The certificate for ${port} in ${file}`
  if (now > validToDate.getTime()) yield* Effect.logWarning(`${subject} has expired on ${validToDate.toISOString()}`)
  if (now < validFromDate.getTime()) {
    yield* Effect.logWarning(`${subject} is not valid before ${validFromDate.toISOString()}`)
  }
})

/** Returns the first certificate. Fails for an invalid one, which OpenSSL would skip in a file with several. */
const certificates = (pem: Buffer): X509Certificate | undefined => {
  const blocks = pem.toString("latin1").match(/-----BEGIN [^-]*CERTIFICATE-----[^-]*-----END [^-]*CERTIFICATE-----/g)
  if (blocks === null) throw new Error("the file contains no PEM certificate")
  const { X509Certificate } = process.getBuiltinModule("node:crypto")
  const [first] = blocks.map((block) => new X509Certificate(block))
  return first
}

const unencrypted = (pem: Buffer): KeyObject => {
  try {
    return process.getBuiltinModule("node:crypto").createPrivateKey(pem)
  } catch (error) {
    throw new Error("the file contains no unencrypted PEM private key", { cause: error })
  }
}

const refuse = (port: string, file: string, reason: unknown): ServeError => {
  const text = errorMessage(reason)
  return new ServeError({ message: `cannot use ${file} for TLS on ${port}: ${text}` })
}
