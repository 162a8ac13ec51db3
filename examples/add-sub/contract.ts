/** The classic: sum and difference of two vectors. Imported by server and client alike. */
import { Model, Tensor } from "@nereid/core"

export class AddSub extends Model.Service<AddSub>()("add_sub", {
  inputs: { INPUT0: Tensor.FP32("n"), INPUT1: Tensor.FP32("n") },
  outputs: { OUTPUT0: Tensor.FP32("n"), OUTPUT1: Tensor.FP32("n") },
  maxBatchSize: 64,
}) {}
