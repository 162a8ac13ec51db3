/**
 * Forwards HTTP headers, or gRPC metadata, as parameters of their request, so that a model can see its client or trace.
 * The operator configures one pattern per port; by default, nothing is forwarded.
 *
 * A parameter has the header's name in lower case, and its value as a string; several values are joined. It overrides a
 * parameter of the same name in the request body.
 */
import { Result } from "effect"
import { InvalidRequest } from "@nereid/core/Errors"
import type { Parameter } from "@nereid/core/internal/request/Request"
import * as KnownParameters from "@nereid/core/internal/wire/KnownParameters"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import { ServeError } from "../error/ServeError.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** The request with the headers that match; those in the form that the sources below give. */
export type ForwardedHeaders = (wire: WireRequest, headers: HeaderEntries) => Result.Result<WireRequest, InvalidRequest>

/** Names and values. */
export type HeaderEntries = Iterable<readonly [string, string | ReadonlyArray<string> | undefined]>

/** Those of node:http as they were sent, for a pattern that minds the case. */
export const fromRaw = function* (rawHeaders: ReadonlyArray<string>): Generator<readonly [string, string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    yield [rawHeaders[index] ?? "", rawHeaders[index + 1] ?? ""]
  }
}

/**
 * Makes the forwarding of a port. `pattern` is a regular expression that matches any part of a name; it ignores case
 * unless it begins with `(?-i)`. Without a pattern, nothing is forwarded. `option` is its source, for messages.
 */
export const make = (
  pattern: string | undefined,
  option: string,
): Result.Result<ForwardedHeaders | undefined, ServeError> => {
  if (pattern === undefined || pattern === "") return Result.succeed(undefined)
  const expression = compile(pattern)
  if (Result.isFailure(expression)) {
    const message = `${option} must be a regular expression, got '${pattern}': ${expression.failure}`
    return Result.fail(new ServeError({ message }))
  }
  return Result.succeed((wire, headers) => {
    const forwarded = new Map<string, Parameter>()
    for (const [sent, value] of headers) {
      if (value === undefined || isTransports(sent) || !expression.success.test(sent)) continue
      const name = sent.toLowerCase()
      if (KnownParameters.isReserved(name)) {
        const message = `Header '${sent}' is reserved for Triton usage and cannot be forwarded.`
        return Result.fail(new InvalidRequest({ message }))
      }
      const text = typeof value === "string" ? value : value.join(", ")
      const before = forwarded.get(name)
      forwarded.set(name, before === undefined ? text : `${before}, ${text}`)
    }
    if (forwarded.size === 0) return Result.succeed(wire)
    return Result.succeed({ ...wire, parameters: { ...wire.parameters, ...Object.fromEntries(forwarded) } })
  })
}

const caseMatters = "(?-i)"

const compile = (pattern: string): Result.Result<RegExp, string> =>
  Result.try({
    try: () =>
      pattern.startsWith(caseMatters)
        ? new RegExp(pattern.slice(caseMatters.length))
        : new RegExp(pattern.replace(/^\(\?i\)/, ""), "i"),
    catch: (error) => errorMessage(error),
  })

/** Tells whether a header belongs to the transport: a pseudo header of HTTP/2, or the error format of a stream. */
const isTransports = (name: string): boolean => name.startsWith(":") || name === "triton_grpc_error"
