/** Words after a prompt, one response each. Imported by the server and by the client. */
import { Model, Tensor } from "@nereid/core"
import { Schema } from "effect"

export class Words extends Model.Service<Words>()("words", {
  inputs: {
    PROMPT: Tensor.utf8(),
    /** 20 by default. The end of a sentence may come before. */
    MAX_WORDS: Tensor.optional(Tensor.scalar("INT32").check(Schema.isBetween({ minimum: 1, maximum: 1000 }))),
    /** The same seed gives the same words; without one, they are others every time. */
    SEED: Tensor.optional(Tensor.scalar("INT32")),
  },
  outputs: { WORD: Tensor.utf8() },
  /** Requests that are answered at the same time. */
  maxBatchSize: 8,
}) {}
