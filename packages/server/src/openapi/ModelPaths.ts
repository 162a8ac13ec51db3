/**
 * The part of a document about one served model: concrete paths with its schemas. The general paths of the protocol
 * (ProtocolPaths.ts) work for every model as well.
 */
import { idleMicros } from "@nereid/core/internal/contract/Contract"
import { Components } from "@nereid/core/internal/openapi/Components"
import * as ModelSchemas from "@nereid/core/internal/openapi/ModelSchemas"
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as EventStream from "./EventStream.ts"
import * as InferencePaths from "./InferencePaths.ts"
import { json, type OpenApiObject, type Operation, success } from "./Operation.ts"
import { body } from "./ProtocolPaths.ts"
import type { ProtocolSchemas } from "./ProtocolSchemas.ts"
import { safeName } from "./SafeName.ts"

/** The operations of a model, by the last segment of their paths, and its schemas. */
export interface ModelPaths {
  readonly operations: ReadonlyArray<readonly [segment: string, operation: ModelOperation]>
  readonly schemas: { readonly [name: string]: SchemaObject }
}

/** An operation without its identifier, which depends on the path. */
export interface ModelOperation extends Omit<Operation, "operationId"> {
  readonly verb: string
}

export const tagOf = (name: string): string => `models/${name}`

export const make = (running: RunningModel, general: ProtocolSchemas): ModelPaths => {
  const { name, version, signature } = running.description
  const sequences = sequenceNote(running.description)
  const components = new Components(`${safeName(name)}.${version}`, ModelSchemas.names)
  const { infer, generate, errors } = ModelSchemas.make(running, components, general)
  const common = { tags: [tagOf(name)], api: "inference", model: { name, version } } as const
  const operations: Array<readonly [string, ModelOperation]> = []
  if (!running.calls.decoupled) {
    const responses = (content: OpenApiObject) => ({
      ...content,
      ...ErrorResponses.ofModel(InferencePaths.inferErrors, false, errors),
    })
    const shapes = [...signature.inputs, ...signature.outputs].map(({ name }) => name).join(", ")
    operations.push([
      "infer",
      infer === undefined
        ? {
            ...common,
            verb: "infer",
            summary: `Infer with ${name}`,
            description: [
              `Only as binary data, because JSON has no form for 16-bit floats. Tensors: ${shapes}`,
              ...sequences,
            ].join(". "),
            parameters: [InferencePaths.timeout, InferencePaths.headerLength],
            requestBody: { required: true, content: InferencePaths.binaryContent },
            responses: responses(
              success(
                "Outputs",
                { ...json(general.inferResponse), ...InferencePaths.binaryContent },
                InferencePaths.binaryHeaders,
              ),
            ),
          }
        : {
            ...common,
            verb: "infer",
            summary: `Infer with ${name}`,
            ...described(sequences),
            parameters: [InferencePaths.timeout],
            requestBody: body(infer.request, true, infer.example),
            responses: responses(success("Outputs", json(infer.response))),
          },
    ])
  }
  if (generate === undefined) return { operations, schemas: components.schemas }
  const request = {
    ...common,
    ...described(sequences),
    parameters: [InferencePaths.timeout],
    requestBody: body(generate.request, true, generate.example),
  }
  const errorsOf = (isStream: boolean) => ErrorResponses.ofModel(InferencePaths.generateErrors, isStream, errors)
  operations.push(
    [
      "generate",
      {
        ...request,
        verb: "generate",
        summary: `Generate one response of ${name}`,
        responses: { ...success("The only response of the model", json(generate.response)), ...errorsOf(false) },
      },
    ],
    [
      "generate_stream",
      {
        ...request,
        verb: "generateStream",
        summary: `Generate a stream of responses of ${name}`,
        responses: {
          ...EventStream.responses(generate.response),
          ...errorsOf(true),
        },
      },
    ],
  )
  return { operations, schemas: components.schemas }
}

/** Sentences about the sequences of a model, without their full stops; empty for a model without. */
const sequenceNote = ({ requiredSequence }: RunningModel["description"]): ReadonlyArray<string> => {
  if (requiredSequence === undefined) return []
  const note = "Every request belongs to a sequence, by its parameters, and has one row"
  const micros = idleMicros(requiredSequence)
  return micros === undefined ? [note] : [note, `A sequence expires after ${micros / 1e6} seconds without requests`]
}

const described = (sentences: ReadonlyArray<string>): Pick<Operation, "description"> =>
  sentences.length === 0 ? {} : { description: sentences.join(". ") }

/** The identifier of an operation; `version` for a path that names it. */
export const operationId = (verb: string, name: string, version: string | undefined): string =>
  version === undefined ? `${verb}_${safeName(name)}` : `${verb}Version_${version}_${safeName(name)}`

export const pathOf = (name: string, version: string | undefined, segment: string): string =>
  `/v2/models/${encodeURIComponent(name)}${version === undefined ? "" : `/versions/${version}`}/${segment}`
