/** The operations of inference on the protocol's paths, for any model, with the binary tensor extension. */
import { headerLengthHeader, timeoutHeader } from "@nereid/core/internal/codec/json/BinaryExtension"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as EventStream from "./EventStream.ts"
import { json, type OpenApiObject, success } from "./Operation.ts"
import { body, type PlacedOperation, placeBoth } from "./ProtocolPaths.ts"
import type { ProtocolSchemas } from "./ProtocolSchemas.ts"

/** Parameters to which inference operations refer. */
export const parameters: OpenApiObject = {
  Timeout: {
    name: timeoutHeader,
    in: "header",
    description: "Time that the caller waits for the response, in milliseconds. Default: no limit",
    schema: { type: "number", minimum: 0, maximum: 999_999_999_999 },
  },
  HeaderLength: {
    name: headerLengthHeader,
    in: "header",
    description: "Bytes of the JSON document before the binary data; 0 for a raw request, without a document",
    schema: { type: "integer", minimum: 0, maximum: 2 ** 31 - 1 },
  },
}

export const timeout = { $ref: "#/components/parameters/Timeout" }
export const headerLength = { $ref: "#/components/parameters/HeaderLength" }

const binary = {
  description: "A JSON document, followed by the bytes of its binary tensors in its order",
  type: "string",
  format: "binary",
}

/** A body with binary tensors. */
export const binaryContent: OpenApiObject = { "application/octet-stream": { schema: binary } }

/** The header of a response with binary tensors. */
export const binaryHeaders: OpenApiObject = {
  [headerLengthHeader]: {
    description: "Bytes of the JSON document before the binary data; absent without binary data",
    schema: { type: "integer", minimum: 0 },
  },
}

export const inferErrors = [400, 403, 404, 408, 415, 500, 501, 503] as const
export const generateErrors = [400, 403, 404, 408, 500, 501, 503] as const

export const make = (schemas: ProtocolSchemas): ReadonlyArray<PlacedOperation> => [
  ...placeBoth("/infer", "post", "Infer", {
    summary: "Infer",
    description: inferDescription,
    api: "inference",
    parameters: [timeout, headerLength],
    requestBody: { required: true, content: { ...json(schemas.inferRequest), ...binaryContent } },
    responses: {
      ...success("Outputs", { ...json(schemas.inferResponse), ...binaryContent }, binaryHeaders),
      ...ErrorResponses.ofModel(inferErrors, false, []),
    },
  }),
  ...placeBoth("/generate", "post", "Generate", {
    summary: "Generate one response",
    api: "inference",
    parameters: [timeout],
    requestBody: body(schemas.generateRequest, true),
    responses: {
      ...success("The only response of the model", json(schemas.generateResponse)),
      ...ErrorResponses.ofModel(generateErrors, false, []),
    },
  }),
  ...placeBoth("/generate_stream", "post", "GenerateStream", {
    summary: "Generate a stream of responses",
    api: "inference",
    parameters: [timeout],
    requestBody: body(schemas.generateRequest, true),
    responses: {
      ...EventStream.responses(schemas.generateResponse),
      ...ErrorResponses.ofModel(generateErrors, true, []),
    },
  }),
]

const inferDescription = [
  "Tensors are in the JSON document, or behind it as binary data (`application/octet-stream`): the header",
  "`Inference-Header-Content-Length` has the length of the document, and `binary_data_size` that of each tensor.",
  "Elements are little-endian and in row-major order. Each element of BYTES follows its length in 4 bytes.",
  "A body may be compressed with gzip or deflate (`Content-Encoding`), and so is the response if `Accept-Encoding`",
  "allows it. A tensor may also be in a registered region of shared memory.",
].join(" ")
