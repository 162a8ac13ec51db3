/**
 * An operation of an OpenAPI document: one method of one path. ProtocolPaths.ts has those of the protocol, and
 * ModelPaths.ts those of single models.
 */
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import type { Api, RestrictedApis } from "../gateway/RestrictedApis.ts"
import { safeName } from "./SafeName.ts"

/** Any other object of a document. */
export interface OpenApiObject {
  readonly [member: string]: unknown
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: ReadonlyArray<string>
  /** API of the operation, for restrictions. */
  readonly api: Api
  readonly parameters?: ReadonlyArray<OpenApiObject>
  readonly requestBody?: OpenApiObject
  readonly responses: OpenApiObject
  /** The model that the operation calls, for an operation of one model. */
  readonly model?: { readonly name: string; readonly version: string }
}

/** The operation as the document has it. `secured`: the header that its API requires, by name of the scheme. */
export const print = (operation: Operation, restrictedApis: RestrictedApis): OpenApiObject => {
  const { api, model, ...others } = operation
  const guard = restrictedApis(api)
  return {
    ...others,
    ...(guard === undefined ? {} : { security: [{ [schemeOf(guard.header)]: [] }] }),
    "x-nereid-api": api,
    ...(model === undefined ? {} : { "x-nereid-model": model }),
  }
}

/** Name of the security scheme for a header. */
export const schemeOf = (header: string): string => `header-${safeName(header)}`

export const json = (schema: SchemaObject, example?: unknown): OpenApiObject => ({
  "application/json": { schema, ...(example === undefined ? {} : { example }) },
})

/** A response of 200. */
export const success = (description: string, content?: OpenApiObject, headers?: OpenApiObject): OpenApiObject => ({
  "200": {
    description,
    ...(headers === undefined ? {} : { headers }),
    ...(content === undefined ? {} : { content }),
  },
})
