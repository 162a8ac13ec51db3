/**
 * The schemas of one served model for OpenAPI: its requests and responses on the protocol's paths, from its description
 * and its declared contract. They describe JSON requests whose outputs come as JSON. Binary data, classes and regions
 * are part of the protocol's general schemas.
 */
import type { ContractDocument } from "../contract/ContractDocument.ts"
import { hasJsonForm } from "../codec/json/JsonDataType.ts"
import * as ContractMessage from "../configuration/ContractMessage.ts"
import { sequenceLosses } from "../error/InferenceError.ts"
import type { ModelDescription } from "../running/ModelDescription.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { isLabel } from "../contract/TensorForm.ts"
import { errorStatuses } from "../wire/ErrorStatus.ts"
import type { Components } from "./Components.ts"
import type { SchemaObject } from "./SchemaObject.ts"
import * as ParameterSchema from "./ParameterSchema.ts"
import * as RequestExample from "./RequestExample.ts"
import * as TensorSchema from "./TensorSchema.ts"

/** References to the schemas of a model. */
export interface ModelSchemas {
  /** Of `infer`; undefined if the model is decoupled, or if an input or output has no JSON form. */
  readonly infer: RequestAndResponse | undefined
  /** Of `generate`; undefined if a required input, or an output, has no JSON form. */
  readonly generate: RequestAndResponse | undefined
  /** Declared errors, and that of a lost sequence, with the schema of their fields. */
  readonly errors: ReadonlyArray<{ readonly tag: string; readonly http: number; readonly schema: SchemaObject }>
}

export interface RequestAndResponse {
  readonly request: SchemaObject
  readonly response: SchemaObject
  /** An example of a request; undefined without one. */
  readonly example?: unknown
}

/** Names of the schemas of a model, which those of its definitions must not have. */
export const names = [
  "InferRequest",
  "InferResponse",
  "GenerateRequest",
  "GenerateResponse",
  "Parameters",
  "ResponseParameters",
] as const

/** Schemas of the document that those of a model refer to. */
export interface General {
  /** Parameters of requests that the protocol knows, and any others. */
  readonly parameters: SchemaObject
  /** The same for requests that must belong to a sequence. */
  readonly sequenceParameters: SchemaObject
}

/** Adds the schemas of a model to `components`. */
export const make = (
  { description, calls }: Pick<RunningModel, "description" | "calls">,
  components: Components,
  { parameters, sequenceParameters }: General,
): ModelSchemas => {
  const { signature, requiredSequence } = description
  // A request of a sequence has one row.
  const maxBatchSize = requiredSequence === undefined ? description.maxBatchSize : Math.min(1, description.maxBatchSize)
  const general = requiredSequence === undefined ? parameters : sequenceParameters
  const document = ContractMessage.make(description)?.document ?? {}
  const tensors = [...signature.inputs, ...signature.outputs]
  const elements = new Map(tensors.map((spec) => [spec, element(spec, components)] as const))
  const elementOf = (spec: TensorSpec) => elements.get(spec) ?? {}
  const example = RequestExample.make(description)
  const parts = { description, document, components, general, maxBatchSize, elementOf, example }
  return {
    infer: !calls.decoupled && tensors.every(({ datatype }) => hasJsonForm(datatype)) ? infer(parts) : undefined,
    generate: isText(description) ? generate(parts) : undefined,
    errors: errors(description, components),
  }
}

/** Adds the schemas of the errors of a model. */
export const errors = (description: ModelDescription, components: Components): ModelSchemas["errors"] => {
  const declared = (ContractMessage.make(description)?.document.errors ?? []).map(({ tag, http_status, schema }) => ({
    tag,
    http: http_status,
    schema: components.name(tag, components.include(separate(schema))),
  }))
  return description.requiredSequence === undefined ? declared : [...declared, lostSequence]
}

/** The request continues no live sequence. */
const lostSequence = {
  tag: "SequenceNotFound",
  http: errorStatuses.SequenceNotFound.http,
  schema: {
    type: "object",
    properties: {
      reason: { type: "string", enum: sequenceLosses, description: "Why no live sequence has the id" },
      idleMillis: { type: "number", description: "Milliseconds that an expired sequence was idle" },
    },
    required: ["reason"],
  },
}

interface Parts {
  readonly description: ModelDescription
  readonly document: ContractDocument
  readonly components: Components
  /** Schema of the parameters that the protocol knows. */
  readonly general: SchemaObject
  readonly maxBatchSize: number
  readonly elementOf: (spec: TensorSpec) => SchemaObject
  readonly example: RequestExample.RequestExamples
}

/** Whether `generate` can carry all required inputs, and all outputs. */
const isText = ({ signature: { inputs, outputs } }: ModelDescription): boolean =>
  [...inputs.filter(({ optional }) => !optional), ...outputs].every(({ datatype }) => hasJsonForm(datatype))

const element = (spec: TensorSpec, components: Components): SchemaObject => {
  if (spec.jsonSchema === undefined) return TensorSchema.element(spec)
  try {
    return TensorSchema.element(spec, components.include(spec.jsonSchema()))
  } catch {
    // A Schema without a JSON Schema.
    return TensorSchema.element(spec)
  }
}

const infer = (parts: Parts): RequestAndResponse => {
  const { description, document, components, maxBatchSize, elementOf } = parts
  const { inputs, outputs } = description.signature
  const tensor = (spec: TensorSpec, data: SchemaObject): SchemaObject => ({
    type: "object",
    properties: {
      name: { const: spec.name },
      datatype: { const: spec.datatype },
      shape: TensorSchema.shape(spec, maxBatchSize),
      data: { ...data, ...labelled(spec) },
    },
    required: ["name", "datatype", "shape", "data"],
  })
  const required = inputs.filter(({ optional }) => !optional).length
  const request = components.add("InferRequest", {
    type: "object",
    properties: {
      id: { type: "string" },
      parameters: parameters(parts),
      inputs: list(
        inputs.map((spec) => tensor(spec, TensorSchema.inputData(spec, maxBatchSize, elementOf(spec)))),
        required,
      ),
      outputs: {
        ...list(
          outputs.map(({ name }) => ({
            type: "object",
            properties: { name: { const: name } },
            required: ["name"],
          })),
          0,
        ),
        description: "The outputs to return. Default: all",
      },
    },
    required: hasRequired(document) ? ["inputs", "parameters"] : ["inputs"],
  })
  const response = components.add("InferResponse", {
    type: "object",
    properties: {
      ...answered(description),
      parameters: responseParameters(parts),
      outputs: list(
        outputs.map((spec) => tensor(spec, TensorSchema.outputData(spec, maxBatchSize, elementOf(spec)))),
        0,
      ),
    },
    required: ["model_name", "model_version", "outputs"],
  })
  return { request, response, example: parts.example.infer }
}

const generate = (parts: Parts): RequestAndResponse => {
  const { description, document, components, general, elementOf } = parts
  const { inputs, outputs } = description.signature
  const isTensor = (name: string) => inputs.some((spec) => spec.name === name)
  const declared = (document.parameters ?? []).filter(({ name }) => !isTensor(name) && !name.startsWith(reserved))
  const fields = inputs.filter(({ datatype }) => hasJsonForm(datatype))
  const request = components.add("GenerateRequest", {
    type: "object",
    properties: {
      ...(isTensor("id") ? {} : { id: { type: "string" } }),
      ...Object.fromEntries(declared.map((entry) => [entry.name, parameter(entry, components)] as const)),
      ...(isTensor("parameters") ? {} : { parameters: general }),
      ...Object.fromEntries(
        fields.map((spec) => [
          spec.name,
          {
            ...TensorSchema.generateInput(spec, elementOf(spec)),
            ...TensorSchema.generateDefault(spec),
          },
        ]),
      ),
    },
    // Further parameters. As `additionalProperties`, generated types would apply it to the inputs as well.
    unevaluatedProperties: ParameterSchema.scalar,
    required: [
      ...[...fields, ...declared].filter(({ optional }) => optional !== true).map(({ name }) => name),
      ...(document.sequence === undefined || isTensor("parameters") ? [] : ["parameters"]),
    ],
  })
  const names = outputs.map(({ name }) => name)
  const others = Object.entries(answered(description)).filter(([name]) => !names.includes(name))
  const response = components.add("GenerateResponse", {
    type: "object",
    properties: {
      ...Object.fromEntries(
        (document.response_parameters ?? []).map((entry) => [entry.name, parameter(entry, components)] as const),
      ),
      ...Object.fromEntries(others),
      ...Object.fromEntries(
        outputs.map((spec) => [
          spec.name,
          { ...TensorSchema.generateOutput(spec, elementOf(spec)), ...labelled(spec) },
        ]),
      ),
    },
    required: [...others.map(([name]) => name).filter((name) => name !== "id"), ...names],
  })
  return { request, response, example: parts.example.generate }
}

/** Names of parameters that callers may not set. */
const reserved = "triton_"

const answered = ({ name, version }: ModelDescription): { readonly [name: string]: SchemaObject } => ({
  id: { type: "string" },
  model_name: { const: name },
  model_version: { const: version },
})

/** An array with one of these schemas for each element. */
const list = (schemas: ReadonlyArray<SchemaObject>, minItems: number): SchemaObject => {
  const [only = {}] = schemas
  return {
    type: "array",
    items: schemas.length > 1 ? { oneOf: schemas } : only,
    ...(minItems > 0 ? { minItems } : {}),
    maxItems: schemas.length,
    ...(schemas.length > 1 ? { uniqueItems: true } : {}),
  }
}

/** The names of the classes, for scores. An index of a class has them in its own schema. */
const labelled = (spec: TensorSpec): SchemaObject =>
  spec.labels === undefined || spec.labels.length === 0 || spec.labels.length > TensorSchema.maxLabels || isLabel(spec)
    ? {}
    : { "x-nereid-labels": spec.labels }

const parameters = ({ document, components, general }: Parts): SchemaObject => {
  if (document.parameters === undefined) return general
  const required = document.parameters.filter(({ optional }) => optional !== true).map(({ name }) => name)
  return components.add("Parameters", {
    allOf: [general],
    type: "object",
    properties: Object.fromEntries(document.parameters.map((entry) => [entry.name, parameter(entry, components)])),
    ...(required.length === 0 ? {} : { required }),
  })
}

const hasRequired = ({ parameters = [], sequence }: ContractDocument): boolean =>
  sequence !== undefined || parameters.some(({ optional }) => optional !== true)

const anyParameters: SchemaObject = {
  type: "object",
  additionalProperties: ParameterSchema.scalar,
}

const responseParameters = ({ document, components }: Parts): SchemaObject => {
  const declared = document.response_parameters ?? []
  if (declared.length === 0) return anyParameters
  return components.add("ResponseParameters", {
    ...anyParameters,
    properties: Object.fromEntries(declared.map((entry) => [entry.name, parameter(entry, components)])),
  })
}

type Parameter = NonNullable<ContractDocument["parameters"]>[number]

const parameter = ({ schema, default: preset }: Parameter, components: Components): SchemaObject => {
  const wire = ParameterSchema.make(separate(schema), components)
  if (preset === undefined) return wire
  const isNumber = wire["type"] === "integer" && typeof preset === "string"
  return { ...wire, default: isNumber ? Number(preset) : preset }
}

const separate = ({ $defs, ...schema }: SchemaObject): JsonSchema => ({
  schema,
  definitions: Object.fromEntries(
    Object.entries(typeof $defs === "object" && $defs !== null ? $defs : {}).filter(
      (entry): entry is [string, object] => typeof entry[1] === "object" && entry[1] !== null,
    ),
  ),
})
