/**
 * The part of a model's declaration that neither metadata nor configuration can say, as JSON: an extension of the model
 * metadata. Servers send it, and ContractExtension.ts reads it. Names are those of the wire.
 */
import { Result, Schema } from "effect"
import { codeName } from "../grpc/GrpcCode.ts"
import type { DeclaredErrors } from "../model/DeclaredErrors.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import { required, type RequiredSequence, type Sequencing } from "../model/Sequencing.ts"
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import type { Signature, TensorSpec } from "../tensor/TensorSpec.ts"
import { idleMicros } from "./Contract.ts"
import { guessedForm } from "./TensorForm.ts"
import * as DefaultDocument from "./DefaultDocument.ts"

/** Longest document, in characters. A server omits a longer one, and a client ignores it. */
export const maxLength = 1024 * 1024

const Tensor = Schema.Struct({
  name: Schema.String,
  /** Present if a dimension has a name. Without the batch dimension. */
  dims: Schema.optionalKey(Schema.Array(Schema.Union([Schema.Int, Schema.String]))),
  /** Present if it differs from the form that the datatype and dims imply. */
  form: Schema.optionalKey(Schema.Literals(["tensor", "scalar", "utf8", "json"])),
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  /** JSON Schema of the text, for the form `json`. */
  schema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  default: Schema.optionalKey(DefaultDocument.DefaultDocument),
})

const Parameter = Schema.Struct({
  name: Schema.String,
  /** JSON Schema of the parameter. Integers of 64 bits are strings of digits. */
  schema: Schema.Record(Schema.String, Schema.Unknown),
  optional: Schema.optionalKey(Schema.Boolean),
  default: Schema.optionalKey(Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])),
})

const DeclaredError = Schema.Struct({
  tag: Schema.String,
  http_status: Schema.Int,
  /** By name, such as `INVALID_ARGUMENT`. */
  grpc_code: Schema.String,
  /** JSON Schema of the fields, with the tag. */
  schema: Schema.Record(Schema.String, Schema.Unknown),
})

/** Most tensors, parameters or errors. */
const maxEntries = 4096

const entries = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.Array(schema).check(Schema.isMaxLength(maxEntries)))

const Sequence = Schema.Struct({
  /** Time after its last response at which a sequence expires. Absent: never. */
  max_idle_microseconds: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
})

export const ContractDocument = Schema.Struct({
  inputs: entries(Tensor),
  outputs: entries(Tensor),
  parameters: entries(Parameter),
  response_parameters: entries(Parameter),
  errors: entries(DeclaredError),
  /** Present if every request must belong to a sequence. */
  sequence: Schema.optionalKey(Sequence),
})

export type ContractDocument = typeof ContractDocument.Type

/** The part of a declaration, or of a running model's description, that the document is made of. */
export interface Declaration {
  readonly signature: Signature
  readonly parameters: ParameterFields.ParameterFields | undefined
  readonly responseParameters: ParameterFields.ParameterFields | undefined
  readonly errors: DeclaredErrors | undefined
  readonly sequencing?: Sequencing | undefined
  /** Of a description. A declaration has it in `sequencing`. */
  readonly requiredSequence?: RequiredSequence | undefined
}

/** The document with its text; undefined if it would say nothing, or too much. */
export const make = ({
  signature,
  parameters,
  responseParameters,
  errors,
  sequencing,
  requiredSequence = required(sequencing),
}: Declaration): { readonly document: ContractDocument; readonly text: string } | undefined => {
  const document: ContractDocument = {
    ...listed("inputs", signature.inputs.flatMap(tensor)),
    ...listed("outputs", signature.outputs.flatMap(tensor)),
    ...listed("parameters", Object.entries(parameters ?? {}).map(parameter)),
    ...listed("response_parameters", Object.entries(responseParameters ?? {}).map(parameter)),
    ...listed("errors", (errors?.entries ?? []).map(declaredError)),
    ...(requiredSequence === undefined ? {} : { sequence: sequence(requiredSequence) }),
  }
  if (Object.keys(document).length === 0) return undefined
  const text = JSON.stringify(document)
  return text.length > maxLength ? undefined : { document, text }
}

const listed = <K extends Exclude<keyof ContractDocument, "sequence">>(
  member: K,
  entries: NonNullable<ContractDocument[K]>,
): Pick<ContractDocument, K> | undefined =>
  entries.length === 0 ? undefined : ({ [member]: entries } as Pick<ContractDocument, K>)

const tensor = (spec: TensorSpec): ReadonlyArray<typeof Tensor.Type> => {
  const { name, dims, form, labels, jsonSchema } = spec
  const preset = spec.default === undefined ? undefined : DefaultDocument.write(spec.datatype, spec.default)
  const entry = {
    ...(dims.some((dim) => typeof dim === "string") ? { dims } : {}),
    ...(form === undefined || form === guessedForm(spec) ? {} : { form }),
    ...(labels === undefined || labels.length === 0 ? {} : { labels }),
    ...(jsonSchema === undefined ? {} : { schema: standalone(jsonSchema) }),
    ...(preset === undefined ? {} : { default: preset }),
  }
  return Object.keys(entry).length === 0 ? [] : [{ name, ...entry }]
}

const parameter = ([name, field]: readonly [string, ParameterFields.ParameterField]): typeof Parameter.Type => {
  const codec = ParameterFields.make({ [name]: field })
  const optional = Result.isSuccess(codec.decode({}))
  const preset = optional ? codec.complete({})[name] : undefined
  return {
    name,
    schema: standalone(() => Schema.toJsonSchemaDocument(Schema.toEncoded(field))),
    ...(optional ? { optional } : {}),
    ...(preset === undefined ? {} : { default: isJson(preset) ? preset : String(preset) }),
  }
}

/** Bigint, NaN and the infinities are strings. */
const isJson = (value: unknown): value is string | number | boolean =>
  typeof value === "number" ? Number.isFinite(value) : typeof value !== "bigint"

const declaredError = ({ tag, http, grpc, error }: DeclaredErrors["entries"][number]): typeof DeclaredError.Type => ({
  tag,
  http_status: http,
  grpc_code: codeName(grpc) ?? "INTERNAL",
  schema: standalone(() => Schema.toJsonSchemaDocument(Schema.toCodecJson(error))),
})

const sequence = (required: RequiredSequence): typeof Sequence.Type => {
  const micros = idleMicros(required)
  return micros === undefined ? {} : { max_idle_microseconds: micros }
}

/** One JSON Schema with its definitions; of a Schema without one, the JSON Schema of every value. */
const standalone = (make: () => JsonSchema): { readonly [keyword: string]: unknown } => {
  try {
    const { schema, definitions } = make()
    return { ...schema, ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }) }
  } catch {
    return {}
  }
}
