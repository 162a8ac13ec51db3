/**
 * Example values of declared parameters, for example requests. Separate from ParameterFields.ts, because JSON Schemas
 * would add a seventh to the size of a client in a browser.
 */
import { Result, SchemaAST } from "effect"
import type { Parameter } from "../request/Request.ts"
import { jsonExample } from "./JsonExample.ts"
import * as ParameterFields from "./ParameterFields.ts"

/** Returns JSON values of the parameters that a request must have. */
export const make = (fields: ParameterFields.ParameterFields): Readonly<Record<string, string | number | boolean>> => {
  const values: Record<string, string | number | boolean> = {}
  for (const [name, field] of Object.entries(fields)) {
    const codec = ParameterFields.make({ [name]: field })
    if (Result.isSuccess(codec.decode({}))) continue
    const value = [annotated(name, field, codec), fromSchema(field), 1, "text", true].find(
      (value) => value !== undefined && Result.isSuccess(codec.decode({ [name]: asParameter(value) })),
    )
    if (value !== undefined) values[name] = value
  }
  return values
}

/** The first of a Schema's `examples`. */
const annotated = (
  name: string,
  field: ParameterFields.ParameterField,
  { encode }: ParameterFields.ParameterCodec,
): string | number | boolean | undefined => {
  const examples: unknown = SchemaAST.resolve(field.ast)?.["examples"]
  const encoded = Array.isArray(examples) ? encode({ [name]: examples[0] }) : undefined
  if (encoded === undefined || Result.isFailure(encoded)) return undefined
  const value = encoded.success[name]
  return typeof value === "bigint" ? Number(value) : value
}

/** Undefined for a Schema without a JSON form, such as `Schema.BigInt`. */
const fromSchema = (field: ParameterFields.ParameterField): string | number | boolean | undefined => {
  try {
    const value: unknown = JSON.parse(jsonExample(field))
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined
  } catch {
    return undefined
  }
}

/** As the protocol's JSON is read: a number without a fraction is an integer. */
const asParameter = (value: string | number | boolean): Parameter =>
  typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value
