/**
 * TLS certificates of a port, read from files, and reloaded when their contents change. HttpListener.ts uses them.
 *
 * The files are read again every few seconds and compared. That also sees what a watch of a file misses: a replacement
 * by renaming, the swapped link of a Kubernetes secret, a file system over a network.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createSecureContext, type SecureContextOptions } from "node:tls"
import { Effect, type Scope } from "effect"
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
export type Credentials = Pick<SecureContextOptions, "cert" | "key" | "ca">

export interface TlsFiles {
  readonly credentials: Credentials
  /** Calls `use` with the new credentials after each change of the files, until its scope closes. */
  readonly follow: (use: (credentials: Credentials) => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Interval between reads of the files. */
const interval = "5 seconds"

/** Loads the files. `port` names the listener in messages. */
export const load = Effect.fnUntraced(function* (port: string, tls: Tls): Effect.fn.Return<TlsFiles, ServeError> {
  if (tls.mutual === true && tls.ca === undefined) {
    const message = `mutual TLS for ${port} needs \`ca\`, the certificates that sign its clients'`
    return yield* new ServeError({ message })
  }
  let known = yield* read(port, tls)
  const credentials = yield* parse(port, tls, known)

  const check = Effect.fnUntraced(function* (use: (credentials: Credentials) => void) {
    const now = yield* read(port, tls)
    if (isEqual(now, known)) return
    known = now
    use(yield* parse(port, tls, now))
    yield* Effect.logInfo(`New certificates for ${port} from ${tls.cert}`)
  })
  const follow: TlsFiles["follow"] = (use) => {
    let lastError = ""
    const tick = check(use).pipe(
      Effect.andThen(Effect.sync(() => (lastError = ""))),
      Effect.catch(({ message }) => {
        // Logs an error once, not at each read.
        if (message === lastError) return Effect.void
        lastError = message
        return Effect.logError(`${message}; ${port} goes on with the certificates it has`)
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
      return yield* refuse(port, tls.key, `it is not the key of the certificate in ${tls.cert}`)
    }
    if (ca !== undefined && tls.ca !== undefined) yield* attempt(tls.ca, () => certificates(ca))
    const credentials = { cert, key, ...(tls.mutual === true && ca !== undefined ? { ca } : {}) }
    yield* attempt(tls.cert, () => createSecureContext(credentials))
    return credentials
  })

/** Returns the first certificate. Fails for an invalid one, which OpenSSL would skip in a file with several. */
const certificates = (pem: Buffer): X509Certificate | undefined => {
  const blocks = pem.toString("latin1").match(/-----BEGIN [^-]*CERTIFICATE-----[^-]*-----END [^-]*CERTIFICATE-----/g)
  if (blocks === null) throw new Error("there is no certificate in PEM in it")
  const [first] = blocks.map((block) => new X509Certificate(block))
  return first
}

const unencrypted = (pem: Buffer): KeyObject => {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw new Error("there is no unencrypted private key in PEM in it", { cause: error })
  }
}

const refuse = (port: string, file: string, reason: unknown): ServeError => {
  const text = errorMessage(reason)
  return new ServeError({ message: `cannot use ${file} for TLS on ${port}: ${text}` })
}
