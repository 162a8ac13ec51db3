/** The topic of a message to a shop, in one request or in its two steps. Imported by server and client alike. */
import { Model, Tensor } from "@nereid/core"
import { Schema } from "effect"

const text = Tensor.utf8().check(Schema.isMaxLength(10_000))

const words = { ids: Tensor.INT64("words"), count: Tensor.scalar("INT64") }

/** The words of a text, as numbers. Without a batch dimension: each text has another length. */
export class Words extends Model.Service<Words>()("topic_words", {
  inputs: { TEXT: text },
  outputs: words,
}) {}

/** Probabilities of the topics, from topics.py. Its batches are of texts of like length, padded by 0. */
export class Classify extends Model.Service<Classify>()("topic_classify", {
  inputs: words,
  outputs: { probabilities: Tensor.FP32(4) },
  maxBatchSize: 32,
  batching: { ragged: { words: { buckets: [8, 32, 128], to: "longest" } } },
}) {}

/** The pipeline of both. */
export class Topic extends Model.Service<Topic>()("topic", {
  inputs: { TEXT: text },
  outputs: {
    TOPIC: Tensor.labels(["account", "delivery", "payment", "return"]),
    PROBABILITY: Tensor.scalar("FP32"),
  },
  maxBatchSize: 32,
}) {}
