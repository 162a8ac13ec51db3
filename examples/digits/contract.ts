/** Handwritten digits: a grey picture in, one score per digit out. Imported by server and client alike. */
import { Model, Tensor } from "@nereid/core"

export class Digits extends Model.Service<Digits>()("digits", {
  /** 0 is paper, 1 is ink. */
  inputs: { image: Tensor.FP32(1, 28, 28) },
  /** The largest of the ten is the digit. */
  outputs: { logits: Tensor.FP32(10) },
  maxBatchSize: 64,
}) {}
