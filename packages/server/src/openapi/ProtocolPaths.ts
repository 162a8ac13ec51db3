/**
 * The operations of the protocol's paths, for any model. HttpRoutes.ts and its parts have the routes; a test compares
 * the two. InferencePaths.ts has inference.
 */
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import * as ErrorResponses from "./ErrorResponses.ts"
import { json, type OpenApiObject, type Operation, success } from "./Operation.ts"
import type { ProtocolSchemas } from "./ProtocolSchemas.ts"

/** One operation with its place. */
export interface PlacedOperation {
  readonly path: string
  readonly method: "get" | "post"
  readonly operation: Operation
}

const parameter = (name: string, description: string, schema: object = { type: "string", minLength: 1 }) => ({
  name,
  in: "path",
  required: true,
  description,
  schema,
})

export const modelName = parameter("model_name", "Name of the model")
export const modelVersion = parameter("model_version", "Version of the model", { type: "string", pattern: "^[0-9]+$" })
const repositoryName = parameter("repository_name", "Name of the repository. No repository has a name")
const regionName = parameter("region_name", "Name of the region")

/** An operation, tagged with its API. */
export const place = (
  path: string,
  method: PlacedOperation["method"],
  operationId: string,
  operation: Omit<Operation, "tags" | "operationId">,
): PlacedOperation => ({ path, method, operation: { operationId, tags: [operation.api], ...operation } })

/** The same operation for the highest version of a model, and for a version that the path names. */
export const placeBoth = (
  suffix: string,
  method: PlacedOperation["method"],
  subject: string,
  operation: Omit<Operation, "tags" | "operationId">,
): ReadonlyArray<PlacedOperation> => {
  const { parameters = [], summary, ...others } = operation
  return [
    place(`/v2/models/{model_name}${suffix}`, method, `model${subject}`, {
      summary,
      ...others,
      parameters: [modelName, ...parameters],
    }),
    place(`/v2/models/{model_name}/versions/{model_version}${suffix}`, method, `modelVersion${subject}`, {
      summary: `${summary}, by version`,
      ...others,
      parameters: [modelName, modelVersion, ...parameters],
    }),
  ]
}

export const body = (schema: SchemaObject, required: boolean, example?: unknown): OpenApiObject => ({
  required,
  content: json(schema, example),
})

export const make = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => [
  ...health(),
  ...information(schemas),
  ...repository(schemas),
  ...sharedMemory(schemas),
  ...settings(schemas),
  ...sequences(schemas),
]

const health = (): ReadonlyArray<PlacedOperation> => [
  place("/v2/health/live", "get", "serverLive", {
    summary: "Whether the server is alive",
    api: "health",
    responses: {
      ...success("The server is alive"),
      "400": { description: "It is not" },
      ...ErrorResponses.of(403, 500),
    },
  }),
  place("/v2/health/ready", "get", "serverReady", {
    summary: "Whether the server is ready",
    api: "health",
    responses: {
      ...success("The server is ready"),
      "400": { description: "It is not" },
      ...ErrorResponses.of(403, 500, 503),
    },
  }),
  ...placeBoth("/ready", "get", "Ready", {
    summary: "Whether a model is ready",
    api: "health",
    responses: { ...success("The model is ready"), ...ErrorResponses.of(400, 403, 404, 500) },
  }),
]

const information = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => {
  const statistics = {
    api: "statistics",
    responses: { ...success("Statistics", json(schemas.statistics)), ...ErrorResponses.of(400, 403, 404, 500, 503) },
  } as const
  return [
    place("/v2", "get", "serverMetadata", {
      summary: "Name, version and extensions of the server",
      api: "metadata",
      responses: { ...success("Metadata", json(schemas.serverMetadata)), ...ErrorResponses.of(403, 500) },
    }),
    place("/openapi.json", "get", "openApi", {
      summary: "This document",
      api: "metadata",
      parameters: [{ name: "if-none-match", in: "header", schema: { type: "string" } }],
      responses: {
        ...success("The document, which changes with the models", json({ type: "object" }), {
          etag: { schema: { type: "string" } },
        }),
        "304": { description: "The document has the tag of `if-none-match`" },
        ...ErrorResponses.of(403, 500),
      },
    }),
    ...placeBoth("", "get", "Metadata", {
      summary: "Inputs and outputs of a model",
      api: "metadata",
      responses: { ...success("Metadata", json(schemas.modelMetadata)), ...ErrorResponses.of(400, 403, 404, 500, 503) },
    }),
    ...placeBoth("/config", "get", "Configuration", {
      summary: "Configuration of a model",
      api: "model-config",
      responses: {
        ...success("Configuration", json(schemas.modelConfig)),
        ...ErrorResponses.of(400, 403, 404, 500, 503),
      },
    }),
    place("/v2/models/stats", "get", "allStatistics", { summary: "Statistics of all models", ...statistics }),
    ...placeBoth("/stats", "get", "Statistics", { summary: "Statistics of a model", ...statistics }),
  ]
}

/** The same operation without a name of a repository, and with one. */
const placeRepository = (
  suffix: string,
  subject: string,
  operation: Omit<Operation, "tags" | "operationId" | "api">,
): ReadonlyArray<PlacedOperation> => {
  const { parameters = [], summary, ...others } = operation
  const api = "model-repository"
  return [
    place(`/v2/repository${suffix}`, "post", `repository${subject}`, { summary, api, ...others, parameters }),
    place(`/v2/repository/{repository_name}${suffix}`, "post", `namedRepository${subject}`, {
      summary: `${summary}, of a named repository`,
      api,
      ...others,
      parameters: [repositoryName, ...parameters],
    }),
  ]
}

const repository = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => [
  ...placeRepository("/index", "Index", {
    summary: "States of all models",
    requestBody: body(schemas.repositoryIndexRequest, false),
    responses: {
      ...success("Models with their states", json(schemas.repositoryIndex)),
      ...ErrorResponses.of(400, 403, 408, 500, 501, 503),
    },
  }),
  ...placeRepository("/models/{model_name}/load", "Load", {
    summary: "Load or reload a model",
    parameters: [modelName],
    requestBody: body(schemas.loadRequest, false),
    responses: { ...success("The model is loaded"), ...ErrorResponses.of(400, 403, 404, 408, 500, 501, 503) },
  }),
  ...placeRepository("/models/{model_name}/unload", "Unload", {
    summary: "Unload a model",
    parameters: [modelName],
    requestBody: body(schemas.unloadRequest, false),
    responses: { ...success("The unload has begun"), ...ErrorResponses.of(400, 403, 404, 408, 500, 501, 503) },
  }),
]

const sharedMemory = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => {
  const api = "shared-memory"
  return (["system", "cuda"] as const).flatMap((kind) => {
    const both = (
      suffix: string,
      method: PlacedOperation["method"],
      subject: string,
      operation: Omit<Operation, "tags" | "operationId" | "api" | "parameters">,
    ) => [
      place(`/v2/${kind}sharedmemory${suffix}`, method, `${kind}SharedMemory${subject}`, { api, ...operation }),
      place(`/v2/${kind}sharedmemory/region/{region_name}${suffix}`, method, `${kind}SharedMemoryRegion${subject}`, {
        api,
        ...operation,
        parameters: [regionName],
      }),
    ]
    const name = kind === "system" ? "system" : "CUDA"
    return [
      ...both("/status", "get", "Status", {
        summary: `Registered regions of ${name} memory`,
        responses: { ...success("Regions", json(schemas.regions)), ...ErrorResponses.of(403, 404, 500) },
      }),
      ...both("/register", "post", "Register", {
        summary: `Register a region of ${name} memory`,
        ...(kind === "system"
          ? { requestBody: body(schemas.region, true) }
          : { description: "Always refused, because the server has no regions of CUDA memory" }),
        responses: { ...success("The region is registered"), ...ErrorResponses.of(400, 403, 408, 500, 501, 503) },
      }),
      ...both("/unregister", "post", "Unregister", {
        summary: `Unregister regions of ${name} memory`,
        responses: { ...success("No region has this name any more"), ...ErrorResponses.of(400, 403, 404, 500, 501) },
      }),
    ]
  })
}

const settings = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => {
  const trace = (path: string, subject: string, parameters: ReadonlyArray<OpenApiObject>) => {
    const of = subject === "trace" ? "" : " of a model"
    const common = { api: "trace", parameters } as const
    return [
      place(path, "get", `${subject}Settings`, {
        summary: `Trace settings${of}`,
        ...common,
        responses: { ...success("Settings", json(schemas.traceSettings)), ...ErrorResponses.of(400, 403, 500) },
      }),
      place(path, "post", `${subject}SettingsUpdate`, {
        summary: `Change trace settings${of}`,
        ...common,
        requestBody: body(schemas.traceChanges, false),
        responses: {
          ...success("Settings after the change", json(schemas.traceSettings)),
          ...ErrorResponses.of(400, 403, 408, 500, 501, 503),
        },
      }),
    ]
  }
  return [
    place("/v2/logging", "get", "logSettings", {
      summary: "Log settings",
      api: "logging",
      responses: { ...success("Settings", json(schemas.logSettings)), ...ErrorResponses.of(403, 500) },
    }),
    place("/v2/logging", "post", "logSettingsUpdate", {
      summary: "Change log settings",
      api: "logging",
      requestBody: body(schemas.logChanges, false),
      responses: {
        ...success("Settings after the change", json(schemas.logSettings)),
        ...ErrorResponses.of(400, 403, 408, 500, 501, 503),
      },
    }),
    ...trace("/v2/trace/setting", "trace", []),
    ...trace("/v2/models/{model_name}/trace/setting", "modelTrace", [modelName]),
  ]
}

const sequences = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => {
  const api = "model-repository"
  return [
    ...placeBoth("/sequences", "get", "Sequences", {
      summary: "Live sequences of a model",
      api,
      responses: {
        ...success("Sequences", json(schemas.sequenceList)),
        ...ErrorResponses.of(400, 403, 404, 500, 501, 503),
      },
    }),
    ...placeBoth("/sequences/export", "post", "SequencesExport", {
      summary: "Take live sequences out of a model",
      api,
      requestBody: body(schemas.sequenceSelection, false),
      responses: {
        ...success("The only copy of the sequences", json(schemas.sequenceExport)),
        ...ErrorResponses.of(400, 403, 404, 408, 500, 501, 503),
      },
    }),
    ...placeBoth("/sequences/import", "post", "SequencesImport", {
      summary: "Add exported sequences to a model",
      api,
      requestBody: body(schemas.sequenceExport, true),
      responses: {
        ...success("Sequences that were taken and refused", json(schemas.sequenceImport)),
        ...ErrorResponses.of(400, 403, 404, 408, 500, 501, 503),
      },
    }),
  ]
}
