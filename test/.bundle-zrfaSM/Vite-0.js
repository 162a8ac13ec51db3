import { Model, Tensor } from "@nereid/core"
import { Client } from "@nereid/client/browser"

class Sentiment extends Model.Service()("sentiment", {
  inputs: { TEXT: Tensor.utf8(), input_ids: Tensor.INT64("n"), threshold: Tensor.optional(Tensor.scalar("FP32")) },
  outputs: { logits: Tensor.FP32(2), CLASS: Tensor.labels(["negative", "positive"]) },
  maxBatchSize: 4,
}) {}

globalThis.connect = () => Client.connect(Sentiment, { url: "https://models.example" })
