/** A decoder, one character at a time, and the model that writes stories with it. */
import { Model, Tensor } from "@nereid/core"
import { Effect, Schema } from "effect"
import * as Alphabet from "./Alphabet.ts"

/** Keys and values of the last 128 characters. */
const cache = Tensor.FP32(128, 32)

/** One step of the network: after each token, the logits of the next one. Its caches are the state of a sequence. */
export class Decoder extends Model.Service<Decoder>()("decoder", {
  inputs: { TOKEN: Tensor.scalar("INT64") },
  outputs: { LOGITS: Tensor.FP32(Alphabet.characters.length) },
  maxBatchSize: 32,
  sequence: {
    state: { POSITION: Tensor.scalar("INT64"), CACHE_0: cache, CACHE_1: cache },
    maxIdle: "10 seconds",
  },
}) {}

/** Continues a prompt to the end of its story, one response for each character. */
export class Writer extends Model.Service<Writer>()("writer", {
  inputs: {
    PROMPT: Tensor.utf8().check(
      Schema.makeFilter((text) => Alphabet.tokens(text) !== undefined || "Expected letters, spaces, commas and stops"),
      Schema.isMaxLength(500),
    ),
  },
  outputs: { CHARACTER: Tensor.utf8() },
  parameters: {
    /** 0 always chooses the likeliest character. */
    temperature: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed(0.5)),
    ),
    /** The same seed gives the same text; without one, it is another text every time. */
    seed: Schema.optionalKey(Schema.Int),
    max_characters: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2000 })).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed(500)),
    ),
  },
  /** Requests that are answered at the same time. */
  maxBatchSize: 32,
}) {}
