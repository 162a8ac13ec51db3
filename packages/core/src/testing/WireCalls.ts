/**
 * Calls a model with protocol bodies, through the codecs and checks of a server; without ports, headers and status
 * codes. Provide.ts has the typed calls.
 */
import { Effect, Result, Stream } from "effect"
import { binaryOutputs, decodeRequest, encodeResponse } from "../codec/json/BinaryExtension.ts"
import { decodeGenerate } from "../codec/generate/GenerateDecoder.ts"
import { encodeGenerated } from "../codec/generate/GenerateEncoder.ts"
import * as ProtobufCodec from "../codec/protobuf/ProtobufCodec.ts"
import { type InferenceError, Unsupported } from "../error/InferenceError.ts"
import { ModelStore } from "../lifecycle/ModelStore.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { Response } from "../request/Request.ts"
import { infer, stream } from "../running/CallableModel.ts"
import { classifiedResponse, validate, type Validated, wireResponse } from "../wire/Validation.ts"
import type { WireRequest, WireResponse } from "../wire/WireRequest.ts"

/** HTTP response to `infer`. */
export interface InferDocument {
  readonly model_name: string
  readonly model_version: string
  readonly id?: string
  readonly parameters?: { readonly [name: string]: unknown }
  readonly outputs: ReadonlyArray<{
    readonly name: string
    readonly datatype: string
    readonly shape: ReadonlyArray<number>
    /** Absent if binary data was requested. */
    readonly data?: ReadonlyArray<unknown>
  }>
}

/** HTTP response to `generate`: one value per output, beside the model's name and version. */
export interface GenerateDocument {
  readonly [name: string]: unknown
}

/** Calls of a started model by the messages of the protocol, without a socket. */
export interface WireCalls {
  /**
   * The response of `POST …/infer` to this JSON, a text or an object. JSON.parse and JSON.stringify convert it; use
   * `inferProtobuf` for NaN, and for integers beyond 53 bits.
   */
  readonly inferJson: (document: string | object) => Effect.Effect<InferDocument, InferenceError>
  /** The response of gRPC's ModelInfer: the bytes of a ModelInferResponse for those of a ModelInferRequest. */
  readonly inferProtobuf: (message: Uint8Array) => Effect.Effect<Uint8Array, InferenceError>
  /** The responses of `POST …/generate_stream` to this JSON, as the model sends them. */
  readonly generate: (document: string | object) => Stream.Stream<GenerateDocument, InferenceError>
}

export const make = (model: RunningModel): WireCalls => {
  const registry = ModelStore.of([model])

  const call = Effect.fnUntraced(function* (wire: WireRequest) {
    const {
      calls: { decoupled },
    } = yield* Effect.fromResult(registry.get(wire.modelName, wire.modelVersion))
    if (decoupled)
      return yield* new Unsupported({
        message: `model '${model.description.name}' is decoupled: call generate instead`,
      })
    const validated = yield* Effect.fromResult(validate(model.description, wire, undefined))
    const response = yield* infer(model.calls, validated.request)
    return yield* Effect.fromResult(written(model, validated, response))
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
            Effect.fromResult(Result.map(encodeGenerated(wireResponse(model.description, validated, response)), parse)),
          )
        }),
      ),
  }
}

const written = (
  { description }: RunningModel,
  validated: Validated,
  response: Response,
): Result.Result<WireResponse, InferenceError> => {
  const slices = classifiedResponse(description, validated, response)
  for (;;) {
    const slice = slices.next()
    if (slice.done === true) return slice.value
  }
}

const body = (document: string | object): Uint8Array =>
  new TextEncoder().encode(typeof document === "string" ? document : JSON.stringify(document))

const parse = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes))
