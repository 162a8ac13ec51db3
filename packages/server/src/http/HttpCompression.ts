/**
 * Compresses and decompresses bodies of `infer` over HTTP in zlib's thread pool, off the event loop, and selects the
 * encodings. GrpcCompression.ts handles gRPC messages.
 *
 * Lengths beside a body, as Inference-Header-Content-Length, are of what it is uncompressed.
 */
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import { Result } from "effect"
import { InvalidRequest } from "@nereid/core/Errors"
import { decompressedTooLarge } from "./HttpBody.ts"
import * as ZlibPool from "../port/ZlibPool.ts"

/** Content encodings of HTTP. "deflate" has the zlib wrapper. */
export type Encoding = "identity" | "gzip" | "deflate"

/** Supported encodings, for the error message of an unsupported one. */
export const supported = "gzip, deflate"

/** The encoding that a Content-Encoding header names; undefined for one that is unknown, and for several. */
export const contentEncoding = (header: string | undefined): Encoding | undefined => {
  if (header === undefined) return "identity"
  const name = header.trim().toLowerCase()
  return name === "" ? "identity" : encodings.find((encoding) => encoding === name)
}

/**
 * Returns the preferred encoding of an Accept-Encoding header: the first of the highest weight. `*` stands for the
 * first encoding that the header does not name. Without a match, it is identity, even if the header excludes that.
 * `offered`: the encodings of which the response has one, identity among them.
 */
export const preferred = (header: string | undefined, offered: ReadonlyArray<Encoding> = encodings): Encoding => {
  if (header === undefined) return "identity"
  const accepted = header.split(",").map(weighted)
  const unnamed = offered.find((encoding) => !accepted.some(({ name }) => name === encoding))
  let best: Encoding = "identity"
  let highest = 0
  for (const { name, weight } of accepted) {
    const encoding = name === "*" ? unnamed : offered.find((known) => known === name)
    if (encoding === undefined || weight <= highest) continue
    best = encoding
    highest = weight
  }
  return best
}

/**
 * Calls `done` with the decompressed body, at once if it is uncompressed. Never holds more than `limit` bytes of
 * output.
 */
export const decompress = (
  encoding: Encoding,
  body: Uint8Array,
  limit: number,
  done: (body: Result.Result<Uint8Array, InvalidRequest>) => void,
): void => {
  if (encoding === "identity") return done(Result.succeed(body))
  const run = encoding === "gzip" ? gunzip : inflate
  // zlib takes no limit below 1.
  const options = { maxOutputLength: Math.max(1, limit), chunkSize: ZlibPool.chunkSize(body.length * 4) }
  const decompressed = ZlibPool.decompressing(() => run(body, options)).then(
    (whole) => Result.succeed(whole),
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ERR_BUFFER_TOO_LARGE") return Result.fail(decompressedTooLarge(limit))
      const message = `failed to decompress the ${encoding} body of ${body.length} bytes: ${error.message}`
      return Result.fail(new InvalidRequest({ message }))
    },
  )
  void decompressed.then(done)
}

/** Calls `done` with the chunks as one compressed body. */
export const compress = (
  encoding: "gzip" | "deflate",
  chunks: ReadonlyArray<Uint8Array>,
  done: (body: Result.Result<Uint8Array, Error>) => void,
): void => {
  const [first] = chunks
  const whole = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
  const finish: zlib.CompressCallback = (error, body) =>
    done(error === null ? Result.succeed(body) : Result.fail(error))
  const run = encoding === "gzip" ? zlib.gzip : zlib.deflate
  run(whole, { chunkSize: ZlibPool.chunkSize(whole.length) }, finish)
}

const gunzip = promisify(zlib.gunzip)
const inflate = promisify(zlib.inflate)

const encodings: ReadonlyArray<Encoding> = ["identity", "gzip", "deflate"]

/** Parses one element of an Accept-Encoding header; an invalid weight counts as 0. */
const weighted = (element: string): { readonly name: string; readonly weight: number } => {
  const [name = "", ...parameters] = element.toLowerCase().split(";")
  const q = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith("q="))
  const weight = q === undefined ? 1 : /^q=[01](\.[0-9]{0,3})?$/.test(q) ? Number(q.slice(2)) : 0
  return { name: name.trim(), weight }
}
