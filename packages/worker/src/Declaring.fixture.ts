/** A model that declares an error and a parameter of its responses, for a handler in a thread. No test is in here. */
import { Model, Tensor } from "@nereid/core"
import { Schema } from "effect"

export class Refused extends Schema.TaggedError<Refused>()("Refused", { least: Schema.Int, given: Schema.Int }) {}

export class Declaring extends Model.Service<Declaring>()("declaring", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  responseParameters: { root: Schema.Number },
  errors: [[Refused, { http: 422, grpc: "OUT_OF_RANGE" }]],
}) {}
