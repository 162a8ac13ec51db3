/** The sentiment of a text, in one request or in its three steps. Imported by server and client alike. */
import { Model, Tensor } from "@nereid/core"
import { Schema } from "effect"

/** Many times what the network reads of a text, and little enough that no text holds up the others. */
const maxCharacters = 10_000

const text = Tensor.utf8().check(Schema.isMaxLength(maxCharacters))

const tokens = { input_ids: Tensor.INT64("sequence"), attention_mask: Tensor.INT64("sequence") }

const verdict = { CLASS: Tensor.labels(["negative", "positive"]), PROB: Tensor.scalar("FP32") }

/** A text as the network's tokens. Without a batch dimension: every text has its own length. */
export class Tokenize extends Model.Service<Tokenize>()("tokenize", {
  inputs: { TEXT: text },
  outputs: tokens,
}) {}

/**
 * The network. Its batches are of texts of like length, padded to the longest: it does not look at what is masked by 0.
 */
export class Bert extends Model.Service<Bert>()("bert", {
  inputs: tokens,
  outputs: { logits: Tensor.FP32(2) },
  maxBatchSize: 32,
  batching: { ragged: { sequence: { buckets: [16, 32, 64, 128], to: "longest" } } },
}) {}

/** Converts the network's logits to a verdict. */
export class Verdict extends Model.Service<Verdict>()("verdict", {
  inputs: { logits: Tensor.FP32(2) },
  outputs: verdict,
  maxBatchSize: 32,
}) {}

/** Ensemble of the three models. */
export class Sentiment extends Model.Service<Sentiment>()("sentiment", {
  inputs: { TEXT: text },
  outputs: verdict,
  maxBatchSize: 32,
}) {}
