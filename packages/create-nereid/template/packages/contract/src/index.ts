/** The model as the server and its clients see it: its name, and its inputs and outputs with their types. */
import { Model, Tensor } from "@nereid/core"

export class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() }, // BYTES [1] on the wire, string in code
  outputs: { LOUD: Tensor.utf8() },
  maxBatchSize: 32,
}) {}
