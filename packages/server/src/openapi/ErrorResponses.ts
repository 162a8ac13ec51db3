/**
 * The error responses of a document: one for each status, with the tags that the status may have. All bodies are
 * `{"error": …}`.
 */
import { documentHeader, tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { errorStatuses } from "@nereid/core/internal/wire/ErrorStatus"
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import * as EventStream from "./EventStream.ts"
import { json, type OpenApiObject } from "./Operation.ts"

/** Statuses with a response in the document. */
const names = {
  400: "BadRequest",
  403: "Forbidden",
  404: "NotFound",
  408: "SlowBody",
  415: "UnsupportedCompression",
  500: "Failed",
  501: "Unsupported",
  503: "Unavailable",
} as const

export type ErrorStatus = keyof typeof names

const descriptions: { readonly [status in ErrorStatus]: string } = {
  400: "The request is invalid, or its body is too large",
  403: "The API is restricted, or the request comes from a page of another origin or names another host",
  404: "Nothing has this name",
  408: "The body did not arrive in time",
  415: "The body has an unsupported compression",
  500: "The model or the server failed",
  501: "The model or the server does not support the request",
  503: "The model or the server takes no requests now, or a deadline or the time in a queue has passed",
}

/** Other errors of a status than those of the table. */
const further: { readonly [status: number]: ReadonlyArray<string> } = {
  408: ["DeadlineExceeded"],
  500: ["MalformedRequest"],
}

/** Errors without a tag. */
const untagged = new Set([403, 415])

const tagsOf = (status: number): ReadonlyArray<string> => [
  ...Object.entries(errorStatuses).flatMap(([tag, { http }]) => (http === status ? [tag] : [])),
  ...(further[status] ?? []),
]

export const errorSchema: SchemaObject = {
  type: "object",
  properties: { error: { type: "string", description: "Error message" } },
  required: ["error"],
}

const errorReference = { $ref: "#/components/schemas/Error" }

/** An error that a model declares, or that its sequences cause, with the schema of its fields. */
export interface DeclaredError {
  readonly tag: string
  readonly http: number
  readonly schema: SchemaObject
}

/** The responses to which operations refer. */
export const components = (): OpenApiObject => {
  const entries = Object.entries(names).flatMap(([status, name]) => [
    [name, response(Number(status), [], false)] as const,
    [`Stream${name}`, response(Number(status), [], true)] as const,
  ])
  return Object.fromEntries([
    ...entries,
    ["OtherError", response(undefined, [], false)],
    ["StreamOtherError", response(undefined, [], true)],
  ])
}

/** References to the responses of these statuses. */
export const of = (...statuses: ReadonlyArray<ErrorStatus>): OpenApiObject =>
  Object.fromEntries(statuses.map((status) => [String(status), { $ref: `#/components/responses/${names[status]}` }]))

/**
 * The errors of a model, by status. Any other status is possible, because a model passes on the errors of models that
 * it calls. `isStream`: a failed request may also be an event stream.
 */
export const ofModel = (
  statuses: ReadonlyArray<ErrorStatus>,
  isStream: boolean,
  declared: ReadonlyArray<DeclaredError>,
): OpenApiObject => {
  const prefix = isStream ? "Stream" : ""
  const general = statuses.map(
    (status) => [String(status), { $ref: `#/components/responses/${prefix}${names[status]}` }] as const,
  )
  const own = Map.groupBy(declared, ({ http }) => http)
  const extended = [...own].map(([status, errors]) => [String(status), response(status, errors, isStream)] as const)
  return Object.fromEntries([
    ...general,
    ...extended,
    ["default", { $ref: `#/components/responses/${prefix}OtherError` }],
  ])
}

/** `status` undefined: any. */
const response = (
  status: number | undefined,
  declared: ReadonlyArray<DeclaredError>,
  isStream: boolean,
): OpenApiObject => {
  const general = status === undefined ? [] : tagsOf(status)
  const tags = [...new Set([...declared.map(({ tag }) => tag), ...general])]
  const description = isListed(status) ? descriptions[status] : "Error of a model that the model calls"
  const own = declared.length === 0 ? "" : `${declared.map(({ tag }) => tag).join(", ")}. `
  const content = json(errorReference)
  return {
    description: own + (declared.length > 0 && !isListed(status) ? "Declared by the model" : description),
    ...(status !== undefined && untagged.has(status) && declared.length === 0
      ? {}
      : { headers: headers(status, tags, declared) }),
    content: isStream ? { ...content, ...EventStream.content(errorReference) } : content,
  }
}

const isListed = (status: number | undefined): status is ErrorStatus =>
  status !== undefined && Object.hasOwn(names, status)

const headers = (
  status: number | undefined,
  tags: ReadonlyArray<string>,
  declared: ReadonlyArray<DeclaredError>,
): OpenApiObject => ({
  [tagHeader]: {
    description: "Kind of the error",
    schema: { type: "string", ...(tags.length === 0 ? {} : { examples: tags }) },
  },
  ...(declared.length === 0
    ? {}
    : {
        [documentHeader]: {
          description: "Fields of a declared error, as JSON",
          content: { "application/json": { schema: oneOf(declared.map(({ schema }) => schema)) } },
        },
      }),
  ...(status === 503
    ? { "retry-after": { description: "Seconds until a retry may succeed", schema: { type: "integer", minimum: 1 } } }
    : {}),
})

const oneOf = (schemas: ReadonlyArray<SchemaObject>): SchemaObject => {
  const [only = {}] = schemas
  return schemas.length > 1 ? { anyOf: schemas } : only
}
