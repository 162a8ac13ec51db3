/**
 * Parameters of requests and responses, declared by Schemas like inputs, and typed for callers and handlers
 * (Declared.ts). Request parameters are decoded once, before the request is queued. Without a declaration, parameters
 * are passed on unchanged (Request.ts).
 *
 * On the wire a parameter is a boolean, an integer, a double or a string; here integers are bigint and doubles number.
 * A Schema of numbers takes both, as callers write 1 for 1.0.
 */
import { Cause, Exit, Result, Schema } from "effect"
import { InvalidRequest } from "../error/InferenceError.ts"
import { errorPrefix, type Parameter, type Parameters, type Request } from "../request/Request.ts"
import type { SampleError } from "./SampleCodec.ts"
import { errorMessage } from "../error/ErrorMessage.ts"

/** A Schema whose encoded side is a parameter and which needs no services. */
export interface ParameterField extends Schema.Constraint {
  readonly Encoded: Parameter | undefined
  readonly DecodingServices: never
  readonly EncodingServices: never
}

export interface ParameterFields {
  readonly [name: PropertyKey]: ParameterField
}

export interface ParameterCodec {
  /** Encodes parameters that a caller gives for a request, or a handler for a response. */
  readonly encode: (given: object) => Result.Result<Parameters, SampleError>
  /**
   * Decodes the declared parameters of a request or response. Ignores others, such as headers and parameters of the
   * protocol.
   */
  readonly decode: (parameters: Parameters) => Result.Result<{ readonly [name: string]: unknown }, SampleError>
  /** Adds the defaults of omitted parameters, for receivers that do not know them. */
  readonly complete: (parameters: Parameters) => Parameters
}

export const make = (fields: ParameterFields): ParameterCodec => {
  const columns = Object.entries(fields).map(([name, field]) => column(name, field))
  return {
    encode: (given) => {
      const parameters: Record<string, Parameter> = {}
      for (const name of Object.keys(given)) {
        if (!Object.hasOwn(fields, name))
          return Result.fail({ field: name, message: `not declared; expected one of ${list(fields)}` })
      }
      for (const { name, encode } of columns) {
        const value: unknown = Reflect.get(given, name)
        if (value === undefined) continue
        const encoded = encode(value)
        if (Result.isFailure(encoded)) return Result.fail({ field: name, message: encoded.failure })
        if (encoded.success !== undefined) parameters[name] = encoded.success
      }
      return Result.succeed(parameters)
    },
    decode: (parameters) => {
      const decoded: Record<string, unknown> = {}
      for (const { name, decode } of columns) {
        const raw = Object.hasOwn(parameters, name) ? parameters[name] : undefined
        const value = decode(raw)
        if (Result.isFailure(value)) return Result.fail({ field: name, message: value.failure })
        if (Object.hasOwn(value.success, name)) decoded[name] = value.success[name]
      }
      return Result.succeed(decoded)
    },
    complete: (parameters) => {
      const completed: Record<string, Parameter> = { ...parameters }
      for (const { name, encode, decode } of columns) {
        if (Object.hasOwn(parameters, name)) continue
        const preset = decode(undefined)
        if (Result.isFailure(preset) || !Object.hasOwn(preset.success, name)) continue
        const encoded = encode(preset.success[name])
        if (Result.isSuccess(encoded) && encoded.success !== undefined) completed[name] = encoded.success
      }
      return completed
    },
  }
}

/** The error of a request whose parameter does not fit. */
export const wrongParameter = (model: string, request: Pick<Request, "id">, { field, message }: SampleError) =>
  new InvalidRequest({ message: `${errorPrefix(request)}parameter '${field}' of model '${model}': ${message}` })

interface Column {
  readonly name: string
  /** The encoded parameter, undefined for an absent value; or a description of the problem. */
  readonly encode: (value: unknown) => Result.Result<Parameter | undefined, string>
  /** A record with the decoded value, or without it if the parameter is absent; or a description of the problem. */
  readonly decode: (raw: Parameter | undefined) => Result.Result<{ readonly [name: string]: unknown }, string>
}

const column = (name: string, field: ParameterField): Column => {
  // Of one key, so that a key that is optional, or has a default, is one.
  const struct = Schema.Struct({ [name]: field })
  const codec: Schema.Codec<{ readonly [name: string]: unknown }, { readonly [name: string]: Parameter }> =
    struct as never
  const decodeExit = Schema.decodeUnknownExit(codec)
  const encodeExit = Schema.encodeUnknownExit(codec)
  const takes = Schema.is(Schema.toEncoded(field as Schema.Constraint & Schema.Codec<unknown, unknown>))
  const options = { reportInput: true }
  return {
    name,
    encode: (value) => {
      const exit = encodeExit({ [name]: value }, options)
      if (Exit.isFailure(exit)) return Result.fail(messageOf(exit.cause))
      return Result.succeed(exit.value[name])
    },
    decode: (raw) => {
      const isNumber = typeof raw === "bigint" && !takes(raw) && Number.isSafeInteger(Number(raw))
      const exit = decodeExit(only(name, isNumber ? Number(raw) : raw), options)
      return Exit.isSuccess(exit) ? Result.succeed(exit.value) : Result.fail(messageOf(exit.cause))
    },
  }
}

/** Without what other objects have anyway, which could be taken for it. */
const only = (name: string, value: Parameter | undefined): object =>
  Object.assign(Object.create(null), value === undefined ? {} : { [name]: value })

/** Without the place: it is the parameter's name. */
const messageOf = (cause: Cause.Cause<Schema.SchemaError>): string => {
  const error = Cause.squash(cause)
  const text = errorMessage(error)
  return text.replaceAll(/\s*\n\s*at \["[^"]*"\]/g, "").replaceAll(/\s*\n\s*/g, "; ")
}

const list = (fields: ParameterFields) =>
  Object.keys(fields)
    .map((name) => `'${name}'`)
    .join(", ")
