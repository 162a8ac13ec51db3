/**
 * Errors that a model declares by Schemas, like its inputs. A handler fails with them, and a caller catches them by
 * their tags. In between, the failure is a DeclaredFailure, which callers without the class receive as it is.
 */
import { Exit, Result, Schema } from "effect"
import { DeclaredFailure, type InferenceError, isReservedTag } from "../error/InferenceError.ts"
import { GrpcCode } from "../grpc/GrpcCode.ts"
import { isErrorKind, maxDocumentLength } from "../wire/ErrorHeaders.ts"

/** Status of a declared error, for clients that do not know the class. */
export interface DeclaredStatus {
  /** The status of its answer over HTTP, 400 to 599. Default 500. */
  readonly http?: number
  /** Its code over gRPC. Default INTERNAL. */
  readonly grpc?: keyof typeof GrpcCode
}

/** A class as `Schema.TaggedError` makes it, which needs no services. */
export interface ErrorClass extends Schema.Constraint {
  readonly Type: Error & { readonly _tag: string }
  readonly DecodingServices: never
  readonly EncodingServices: never
  readonly fields: { readonly _tag: { readonly Type: string } }
  new (...fields: never): Error & { readonly _tag: string }
}

export type ErrorEntry = ErrorClass | readonly [error: ErrorClass, status: DeclaredStatus]

export type ErrorEntries = ReadonlyArray<ErrorEntry>

export type ErrorOf<E extends ErrorEntry> = E extends readonly [infer C extends ErrorClass, DeclaredStatus]
  ? C["Type"]
  : E extends ErrorClass
    ? E["Type"]
    : never

/** The DeclaredFailure of each error that was encoded or decoded. */
const origins = new WeakMap<object, DeclaredFailure>()

/** The failure that a caller received as this error, if the called model declares it. */
export const originOf = (error: unknown): DeclaredFailure | undefined =>
  typeof error === "object" && error !== null ? origins.get(error) : undefined

/** One declared error, as data. */
export interface DeclaredError {
  readonly tag: string
  /** Status over HTTP. */
  readonly http: number
  /** Code over gRPC. */
  readonly grpc: number
  readonly error: ErrorClass
}

export interface DeclaredErrors {
  /** In the order of declaration. */
  readonly entries: ReadonlyArray<DeclaredError>
  /** Encodes a handler's failure; undefined if it is not a declared error. */
  readonly encode: (error: unknown) => DeclaredFailure | undefined
  /**
   * Decodes a failure to an instance of its class. Returns the failure itself if it is not declared or cannot be
   * decoded.
   */
  readonly decode: (failure: InferenceError) => unknown
  /** A failure of another process, with the status that is declared here. */
  readonly withDeclaredStatus: (failure: InferenceError) => InferenceError
}

/** @throws TypeError if a tag is reserved or duplicate, or if a status is invalid */
export const make = (model: string, entries: ErrorEntries): DeclaredErrors => {
  const kinds = new Map<string, ErrorKind>()
  for (const entry of entries) {
    const [error, status = {}] = isClass(entry) ? [entry] : entry
    const kind = makeKind(model, error, status)
    if (isReservedTag(kind.tag) || kinds.has(kind.tag)) {
      throw new TypeError(`Model "${model}": the tag "${kind.tag}" of an error is already in use.`)
    }
    kinds.set(kind.tag, kind)
  }
  return {
    entries: [...kinds.values()].map(({ tag, error, status }) => ({ tag, ...status, error })),
    encode: (error) => {
      const kind = error instanceof Error && "_tag" in error ? kinds.get(String(error._tag)) : undefined
      if (kind === undefined || !(error instanceof kind.error)) return undefined
      const failure = kind.failure(error)
      origins.set(error, failure)
      return failure
    },
    decode: (failure) => {
      if (!(failure instanceof DeclaredFailure)) return failure
      const kind = kinds.get(failure.kind)
      if (kind === undefined) return failure
      if (failure.error instanceof kind.error) return failure.error
      const error = kind.read(failure.document)
      if (error === undefined) return failure
      origins.set(error, failure)
      return error
    },
    withDeclaredStatus: (failure) => {
      if (!(failure instanceof DeclaredFailure)) return failure
      const kind = kinds.get(failure.kind)
      const { message, document, error } = failure
      return kind === undefined
        ? failure
        : new DeclaredFailure({ message, kind: kind.tag, ...kind.status, document, error })
    },
  }
}

interface ErrorKind {
  readonly tag: string
  readonly error: ErrorClass
  readonly status: { readonly http: number; readonly grpc: number }
  readonly failure: (error: Error) => DeclaredFailure
  readonly read: (document: string | undefined) => object | undefined
}

const isClass = (entry: ErrorEntry): entry is ErrorClass => typeof entry === "function"

const makeKind = (model: string, error: ErrorClass, { http = 500, grpc = "INTERNAL" }: DeclaredStatus): ErrorKind => {
  const tag = tagOf(error)
  if (tag === undefined || !isErrorKind(tag)) {
    throw new TypeError(`Model "${model}": an error must be a Schema.TaggedError with a tag of printable ASCII.`)
  }
  if (!Number.isSafeInteger(http) || http < 400 || http > 599) {
    throw new TypeError(`Model "${model}": the HTTP status of "${tag}" must be 400 to 599, but ${http} was given.`)
  }
  if (!Object.hasOwn(GrpcCode, grpc)) {
    throw new TypeError(`Model "${model}": the gRPC code of "${tag}" is unknown: ${JSON.stringify(grpc)}.`)
  }
  const status = { http, grpc: GrpcCode[grpc] }
  // Its type is that of ErrorClass: it needs no services.
  const codec = Schema.toCodecJson(error) as unknown as Schema.Codec<Error, Schema.Json>
  const encode = Schema.encodeUnknownResult(codec)
  const decode = Schema.decodeUnknownExit(codec)
  return {
    tag,
    error,
    status,
    failure: (failed) => {
      const encoded = encode(failed)
      const json = Result.isSuccess(encoded) ? JSON.stringify(encoded.success) : undefined
      const message = text(tag, failed, json)
      return new DeclaredFailure({ message, kind: tag, ...status, document: headerText(json), error: failed })
    },
    read: (document) => {
      if (document === undefined) return undefined
      try {
        const exit = decode(JSON.parse(document))
        return Exit.isSuccess(exit) ? exit.value : undefined
      } catch {
        return undefined
      }
    },
  }
}

/** The tag that instances of this class have. */
const tagOf = (error: ErrorClass): string | undefined => {
  const { ast }: { readonly ast?: { readonly literal?: unknown } } = Object(error.fields?._tag)
  return typeof ast?.literal === "string" ? ast.literal : undefined
}

/** The text for clients that do not know the class; an error without a message shows its fields. */
const text = (tag: string, { message }: Error, json: string | undefined): string => {
  if (message !== "") return `${tag}: ${message}`
  const fields = json?.replace(/^\{"_tag":"[^"]*",?/, "{") ?? "{}"
  return fields === "{}" ? tag : `${tag}: ${fields}`
}

/** The text of a header field; undefined if it is too long. */
const headerText = (json: string | undefined): string | undefined => {
  const ascii = json?.replaceAll(/[\u007F-\uFFFF]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
  return ascii === undefined || ascii.length > maxDocumentLength ? undefined : ascii
}
