/**
 * Compression of gRPC messages for Connect, off the event loop: the encodings, and which responses may be compressed.
 * HttpCompression.ts compresses HTTP bodies.
 *
 * Requests may always be compressed. A response is compressed only if a level is set, the RPC is an inference, and the
 * client accepts it. By default, Connect would compress every response above 1 KiB to grpc-js and Python.
 */
import type { IncomingHttpHeaders } from "node:http"
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import type { ConnectError, HandlerContext } from "@connectrpc/connect"
import { InvalidRequest, Unsupported } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { exhausted, fromError } from "./CallStatus.ts"
import { connectError } from "./connectError.ts"
import type { ResponseCompression } from "./ResponseCompression.ts"
import * as ZlibPool from "../port/ZlibPool.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Levels of zlib, and brotli qualities of about the same cost. */
const levels = {
  low: { zlib: 1, brotli: 1 },
  medium: { zlib: 6, brotli: 5 },
  high: { zlib: 9, brotli: 9 },
}

const names = ["gzip", "deflate", "br"]

/** Encoding in the form that Connect takes. */
interface Encoding {
  readonly name: string
  readonly compress: (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>
  /** Fails if the output exceeds `limit` bytes, without allocating it. */
  readonly decompress: (bytes: Uint8Array, limit: number) => Promise<Uint8Array<ArrayBuffer>>
}

/** Encodings that requests may use, and responses if a level is set. gRPC's "deflate" has the zlib wrapper. */
export const encodings = (response: ResponseCompression): Array<Encoding> => {
  const level = levels[response === "none" ? "low" : response]
  const encoding = (
    name: string,
    compress: (bytes: Uint8Array, options: Chunks) => Promise<Uint8Array<ArrayBuffer>>,
    decompress: (bytes: Uint8Array, options: Chunks & { maxOutputLength: number }) => Promise<Uint8Array<ArrayBuffer>>,
  ): Encoding => ({
    name,
    compress: (bytes) => compress(bytes, chunks(bytes.length)),
    decompress: (bytes, limit) =>
      ZlibPool.decompressing(async () => {
        if (bytes.length === 0) return new Uint8Array(0)
        try {
          return await decompress(bytes, { maxOutputLength: limit, ...chunks(bytes.length * 4) })
        } catch (error) {
          throw isTooLarge(error) ? tooLarge(limit) : malformed(name, bytes.length, error)
        }
      }),
  })
  const brotli = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: level.brotli } }
  return [
    encoding("gzip", (bytes, options) => gzip(bytes, { level: level.zlib, ...options }), gunzip),
    encoding("deflate", (bytes, options) => deflate(bytes, { level: level.zlib, ...options }), inflate),
    encoding("br", (bytes, options) => brotliCompress(bytes, { ...brotli, ...options }), brotliDecompress),
  ]
}

/**
 * Refuses an unknown encoding and lists the supported ones, because Connect removes that header from its own refusal.
 */
export const refuseUnknown = ({ requestHeader, responseHeader }: HandlerContext): void => {
  const requested = requestHeader.get("grpc-encoding")
  if (requested === null || requested === "identity" || names.includes(requested)) return
  responseHeader.set("grpc-accept-encoding", ["identity", ...names].join())
  const message = `unknown grpc-encoding '${requested}', expected one of ${names.join(", ")}`
  throw connectError(fromError(new Unsupported({ message })))
}

/** Removes disallowed response encodings from the request's headers, before Connect reads them. */
export const restrict = (headers: IncomingHttpHeaders, path: string, response: ResponseCompression): void => {
  const allowed = response !== "none" && inferencePaths.has(path)
  for (const name of acceptHeaders) {
    // Without this header, Connect would respond in the encoding of the request.
    if (!allowed || headers[name] === undefined) headers[name] = "identity"
  }
}

/** Headers of gRPC and gRPC-Web, of Connect streams, and of unary Connect calls. */
const acceptHeaders = ["grpc-accept-encoding", "connect-accept-encoding", "accept-encoding"]

const { typeName, method } = GRPCInferenceService

const inferencePaths: ReadonlySet<string> = new Set(
  [method.modelInfer, method.modelStreamInfer].map(({ name }) => `/${typeName}/${name}`),
)

const gzip = promisify(zlib.gzip)
const gunzip = promisify(zlib.gunzip)
const deflate = promisify(zlib.deflate)
const inflate = promisify(zlib.inflate)
const brotliCompress = promisify(zlib.brotliCompress)
const brotliDecompress = promisify(zlib.brotliDecompress)

interface Chunks {
  readonly chunkSize: number
}

const chunks = (expected: number): Chunks => ({ chunkSize: ZlibPool.chunkSize(expected) })

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"

const tooLarge = (limit: number): ConnectError => {
  const message = `Received message larger than max (more than ${limit} vs. ${limit})`
  return connectError(exhausted(new InvalidRequest({ message })))
}

const malformed = (name: string, length: number, error: unknown): ConnectError => {
  const reason = errorMessage(error)
  const message = `failed to decompress the ${name} message of ${length} bytes: ${reason}`
  return connectError(fromError(new InvalidRequest({ message })))
}
