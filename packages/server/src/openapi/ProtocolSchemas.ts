/**
 * The schemas of the protocol's JSON, for any model. ModelPaths.ts has those of single models.
 */
import { ContractDocument } from "@nereid/core/internal/contract/ContractDocument"
import { Components } from "@nereid/core/internal/openapi/Components"
import * as MessageSchema from "@nereid/core/internal/openapi/MessageSchema"
import { scalar } from "@nereid/core/internal/openapi/ParameterSchema"
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import * as TensorSchema from "@nereid/core/internal/openapi/TensorSchema"
import * as DataType from "@nereid/core/internal/tensor/DataType"
import { ModelStatisticsSchema } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { Schema } from "effect"
import { errorSchema } from "./ErrorResponses.ts"

const string: SchemaObject = { type: "string" }
const unsigned = TensorSchema.uint64
const boolean: SchemaObject = { type: "boolean" }

const object = (
  properties: { readonly [name: string]: SchemaObject },
  required: ReadonlyArray<string> = Object.keys(properties),
): SchemaObject => ({ type: "object", properties, ...(required.length === 0 ? {} : { required }) })

const array = (items: SchemaObject): SchemaObject => ({ type: "array", items })

/** References to the schemas. */
export interface ProtocolSchemas {
  readonly schemas: { readonly [name: string]: SchemaObject }
  readonly serverMetadata: SchemaObject
  readonly modelMetadata: SchemaObject
  readonly modelConfig: SchemaObject
  readonly statistics: SchemaObject
  readonly repositoryIndex: SchemaObject
  readonly repositoryIndexRequest: SchemaObject
  readonly loadRequest: SchemaObject
  readonly unloadRequest: SchemaObject
  readonly inferRequest: SchemaObject
  readonly inferResponse: SchemaObject
  readonly generateRequest: SchemaObject
  readonly generateResponse: SchemaObject
  readonly parameters: SchemaObject
  readonly sequenceParameters: SchemaObject
  readonly regions: SchemaObject
  readonly region: SchemaObject
  readonly logSettings: SchemaObject
  readonly logChanges: SchemaObject
  readonly traceSettings: SchemaObject
  readonly traceChanges: SchemaObject
  readonly sequenceList: SchemaObject
  readonly sequenceSelection: SchemaObject
  readonly sequenceExport: SchemaObject
  readonly sequenceImport: SchemaObject
  readonly error: SchemaObject
}

export const make = (): ProtocolSchemas => {
  const components = new Components("")
  const add = (name: string, schema: SchemaObject) => components.add(name, schema)
  const parameters = add("RequestParameters", requestParameters)
  const tensor = add("TensorMetadata", object({ name: string, datatype: string, shape: array({ type: "integer" }) }))
  const contract = add("ModelContract", components.include(Schema.toJsonSchemaDocument(ContractDocument)))
  // Not recursive: types that generators make of it would refer to themselves.
  const data = add("TensorData", {
    ...array({ type: ["number", "string", "boolean", "array"] }),
    description: "Elements, in one array or in nested arrays. NaN and the infinities are numbers without quotes",
  })
  return {
    error: add("Error", errorSchema),
    parameters,
    sequenceParameters: add("SequenceParameters", sequenceParameters(parameters)),
    serverMetadata: add("ServerMetadata", object({ name: string, version: string, extensions: array(string) })),
    modelMetadata: add(
      "ModelMetadata",
      object(
        {
          name: string,
          versions: array(string),
          platform: string,
          inputs: array(tensor),
          outputs: array(tensor),
          contract,
        },
        ["name", "versions", "platform", "inputs", "outputs"],
      ),
    ),
    modelConfig: MessageSchema.add(ModelConfigSchema, components),
    statistics: add(
      "ModelStatisticsList",
      object({ model_stats: array(MessageSchema.add(ModelStatisticsSchema, components)) }),
    ),
    repositoryIndex: add("RepositoryIndex", array(indexEntry)),
    repositoryIndexRequest: add("RepositoryIndexRequest", object({ ready: boolean }, [])),
    loadRequest: add("LoadRequest", loadRequest),
    unloadRequest: add("UnloadRequest", object({ parameters: object({ unload_dependents: boolean }, []) }, [])),
    inferRequest: add("InferRequest", inferRequest(parameters, data)),
    inferResponse: add("InferResponse", inferResponse(data)),
    generateRequest: add("GenerateRequest", {
      ...object({ parameters }, []),
      description: "Members with the name of an input are tensors, and all others are parameters",
    }),
    generateResponse: add("GenerateResponse", {
      type: "object",
      description: "The id, `model_name`, `model_version`, each output and each parameter of the response",
    }),
    regions: add(
      "SharedMemoryRegions",
      array(object({ name: string, key: string, offset: unsigned, byte_size: unsigned })),
    ),
    region: add(
      "SharedMemoryRegion",
      object({ key: string, offset: unsigned, byte_size: unsigned }, ["key", "byte_size"]),
    ),
    logSettings: add("LogSettings", object({ log_file: string, ...logSettings })),
    logChanges: add("LogChanges", { ...object(nullable(logSettings), []), additionalProperties: false }),
    traceSettings: add(
      "TraceSettings",
      object(traceSettings, ["trace_level", "trace_rate", "trace_count", "trace_mode"]),
    ),
    // Triton ignores unknown settings of traces, but not those of the log.
    traceChanges: add("TraceChanges", object(nullable(traceChanges), [])),
    ...sequenceSchemas(add),
    schemas: components.schemas,
  }
}

const indexEntry = object(
  {
    name: string,
    version: string,
    state: { type: "string", enum: ["UNKNOWN", "READY", "UNAVAILABLE", "LOADING", "UNLOADING"] },
    reason: { type: "string", description: "Reason for the state" },
  },
  ["name"],
)

/** Values that the protocol knows, and any others for the model. */
const requestParameters: SchemaObject = {
  type: "object",
  properties: {
    sequence_id: {
      anyOf: [{ type: "string", maxLength: 128 }, unsigned],
      description: "Id of the sequence. 0 and an empty string count as absent",
    },
    sequence_start: { ...boolean, description: "Whether the request starts the sequence" },
    sequence_end: { ...boolean, description: "Whether the request is the last one of the sequence" },
    priority: unsigned,
    timeout: { ...unsigned, description: "Longest time in the queue, in microseconds" },
  },
  additionalProperties: scalar,
  propertyNames: { not: { pattern: "^triton_" } },
}

/** A sequence with any id but 0 and the empty string, which are none. */
const sequenceParameters = (parameters: SchemaObject): SchemaObject => ({
  allOf: [parameters],
  type: "object",
  properties: {
    sequence_id: {
      anyOf: [
        { type: "string", minLength: 1, maxLength: 128 },
        { ...unsigned, minimum: 1 },
      ],
    },
    sequence_number: {
      type: "integer",
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        "Position of the request, from 1 at the start. Requests that overtake one another are put in order, and a " +
        "request that is sent again has the same reply",
    },
    sequence_max_idle: {
      type: "integer",
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        "Microseconds without requests after which the sequence expires, from this request on, up to the limit of the " +
        "model",
    },
  },
  required: ["sequence_id"],
  description: "Every request of the model belongs to a sequence. The first one has `sequence_start`",
})

const loadRequest = object(
  {
    parameters: {
      type: "object",
      properties: { config: { type: "string", description: "The configuration, as JSON" } },
      patternProperties: {
        "^file:": { type: "string", contentEncoding: "base64", description: "Content of a file of the model" },
      },
      additionalProperties: false,
    },
  },
  [],
)

const logSettings: { readonly [name: string]: SchemaObject } = {
  log_info: boolean,
  log_warning: boolean,
  log_error: boolean,
  log_verbose_level: { ...unsigned, maximum: 2 ** 32 - 1 },
  log_format: { type: "string", enum: ["default", "ISO8601", "json"] },
}

const digits: SchemaObject = { type: "string", pattern: "^[0-9]{1,9}$" }
const count: SchemaObject = { type: "string", pattern: "^(-1|[0-9]{1,9})$" }

const traceChanges: { readonly [name: string]: SchemaObject } = {
  trace_level: {
    anyOf: [
      { type: "array", items: { type: "string", enum: ["TIMESTAMPS", "TENSORS"] } },
      { type: "array", items: { const: "OFF" }, minItems: 1, maxItems: 1 },
    ],
  },
  trace_rate: digits,
  trace_count: count,
  log_frequency: digits,
}

const traceSettings: { readonly [name: string]: SchemaObject } = {
  trace_level: array(string),
  trace_rate: string,
  trace_count: string,
  log_frequency: string,
  trace_file: string,
  trace_mode: string,
}

/** Null resets a setting. */
const nullable = (properties: { readonly [name: string]: SchemaObject }) =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, { anyOf: [schema, { type: "null" }] } as const]),
  )

const datatype: SchemaObject = { type: "string", enum: DataType.all }

const region = {
  shared_memory_region: string,
  shared_memory_byte_size: unsigned,
  shared_memory_offset: unsigned,
}

const inferRequest = (parameters: SchemaObject, data: SchemaObject): SchemaObject =>
  object(
    {
      id: string,
      parameters: {
        allOf: [parameters],
        type: "object",
        properties: {
          binary_data_output: { ...boolean, description: "Whether outputs are sent as binary data. Default: no" },
        },
      },
      inputs: array(
        object(
          {
            name: string,
            datatype,
            shape: array(unsigned),
            parameters: {
              ...object(
                { binary_data_size: { ...unsigned, description: "Bytes of the data after the document" }, ...region },
                [],
              ),
              description: "Replace `data`: binary data, or a part of a shared memory region",
            },
            data,
          },
          ["name", "datatype", "shape"],
        ),
      ),
      outputs: array(
        object(
          {
            name: string,
            parameters: object(
              {
                binary_data: { ...boolean, description: "Whether the output is sent as binary data" },
                classification: { ...unsigned, description: "Number of classes to return instead of the values" },
                ...region,
              },
              [],
            ),
          },
          ["name"],
        ),
      ),
    },
    ["inputs"],
  )

const inferResponse = (data: SchemaObject): SchemaObject =>
  object(
    {
      id: string,
      model_name: string,
      model_version: string,
      parameters: { type: "object", additionalProperties: scalar },
      outputs: array(
        object(
          {
            name: string,
            datatype,
            shape: array(unsigned),
            parameters: object({ binary_data_size: unsigned, ...region }, []),
            data,
          },
          ["name", "datatype", "shape"],
        ),
      ),
    },
    ["model_name", "model_version", "outputs"],
  )

const sequenceSchemas = (add: (name: string, schema: SchemaObject) => SchemaObject) => {
  const idFields = { id: string, datatype: { type: "string", enum: ["UINT64", "BYTES"] } } as const
  const id = add("SequenceId", object(idFields))
  const state = add("SequenceState", {
    ...object({ datatype: string, shape: array(unsigned), data: string }),
    description: "The bytes of `data` are in base64, little endian",
  })
  const sequence = add(
    "ExportedSequence",
    object({ ...idFields, age_ms: unsigned, state: array(state) }, ["id", "datatype"]),
  )
  const refused = add("RefusedSequence", object({ ...idFields, kind: string, error: string }))
  const head = { format: unsigned, model: string, states: string, sequences: array(sequence) }
  return {
    sequenceList: add(
      "SequenceList",
      object({
        model: string,
        version: string,
        live: unsigned,
        backlog: unsigned,
        state_bytes: unsigned,
        movable: boolean,
        sequences: array(id),
      }),
    ),
    sequenceSelection: add("SequenceSelection", object({ ids: array(id), wait_ms: unsigned }, [])),
    sequenceExport: add("SequenceExport", object({ ...head, remaining: unsigned }, Object.keys(head))),
    sequenceImport: add("SequenceImport", object({ imported: unsigned, refused: array(refused) })),
  }
}
