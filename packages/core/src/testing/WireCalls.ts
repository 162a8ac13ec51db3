/**
 * The bodies of the protocol, to a model and back, through the codecs and the checks that a server has them pass; without
 * its ports, and so without headers and status codes. The same calls with types are Provide.ts's.
 */
import { Effect, Result, Stream } from "effect"
import { binaryOutputs, decodeRequest, encodeResponse } from "../codec/json/BinaryExtension.ts"
import { decodeGenerate } from "../codec/generate/GenerateDecoder.ts"
import { encodeGenerated } from "../codec/generate/GenerateEncoder.ts"
import * as ProtobufCodec from "../codec/protobuf/ProtobufCodec.ts"
import { type InferenceError, Unsupported } from "../error/InferenceError.ts"
import { ModelStore } from "../lifecycle/ModelStore.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { infer, stream } from "../running/CallableModel.ts"
import { validate, wireResponse } from "../wire/Validation.ts"
import type { WireRequest } from "../wire/WireRequest.ts"

/** What HTTP answers to `infer`. */
export interface InferDocument {
  readonly model_name: string
  readonly model_version: string
  readonly id?: string
  readonly parameters?: { readonly [name: string]: unknown }
  readonly outputs: ReadonlyArray<{
    readonly name: string
    readonly datatype: string
    readonly shape: ReadonlyArray<number>
    /** Absent where it was asked for as binary data. */
    readonly data?: ReadonlyArray<unknown>
  }>
}

/** What HTTP answers to `generate`: one value per output, beside the model's name and version. */
export interface GenerateDocument {
  readonly [name: string]: unknown
}

export interface WireCalls {
  /**
   * What `POST …/infer` would answer to this JSON, a text or an object. Both ways as JSON.parse and JSON.stringify have it:
   * integers beyond 53 bits, and NaN, are for `inferProtobuf`.
   */
  readonly inferJson: (document: string | object) => Effect.Effect<InferDocument, InferenceError>
  /** What gRPC's ModelInfer would answer to the bytes of this ModelInferRequest: those of a ModelInferResponse. */
  readonly inferProtobuf: (message: Uint8Array) => Effect.Effect<Uint8Array, InferenceError>
  /** What `POST …/generate_stream` would answer to this JSON: every response of the model, as it comes. */
  readonly generate: (document: string | object) => Stream.Stream<GenerateDocument, InferenceError>
}

export const make = (model: RunningModel): WireCalls => {
  const registry = ModelStore.of([model])

  const call = Effect.fnUntraced(function* (wire: WireRequest) {
    const {
      calls: { decoupled },
    } = yield* Effect.fromResult(registry.get(wire.modelName, wire.modelVersion))
    if (decoupled)
      return yield* new Unsupported({ message: `model '${model.description.name}' is decoupled: ask it by generate` })
    const validated = yield* Effect.fromResult(validate(model.description, wire, undefined))
    const response = yield* infer(model.calls, validated.request)
    return yield* Effect.fromResult(wireResponse(model.description, validated, response))
  })

  return {
    inferJson: Effect.fnUntraced(function* (document) {
      const decoded = yield* Effect.fromResult(decodeRequest(body(document), undefined, model.description))
      const response = yield* call(decoded.wire)
      const encoded = yield* Effect.fromResult(encodeResponse(response, binaryOutputs(decoded, response)))
      return parse(encoded.document)
    }),
    inferProtobuf: Effect.fnUntraced(function* (message) {
      const wire = yield* Effect.fromResult(ProtobufCodec.decode(message))
      return ProtobufCodec.encode(yield* call(wire))
    }),
    generate: (document) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const wire = yield* Effect.fromResult(decodeGenerate(body(document), model.description))
          const validated = yield* Effect.fromResult(validate(model.description, wire, undefined))
          return Stream.mapEffect(stream(model.calls, validated.request), (response) =>
            Effect.fromResult(
              Result.map(Result.flatMap(wireResponse(model.description, validated, response), encodeGenerated), parse),
            ),
          )
        }),
      ),
  }
}

const body = (document: string | object): Uint8Array =>
  new TextEncoder().encode(typeof document === "string" ? document : JSON.stringify(document))

const parse = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes))
