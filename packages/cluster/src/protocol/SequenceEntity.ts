/** The messages between runners: calls of the sequences of one model. They bypass the message storage. */
import { Schema } from "effect"
import * as Entity from "effect/cluster/Entity"
import * as Rpc from "effect/rpc/Rpc"
import { Failure } from "./Failure.ts"

/** One call of a model. */
export class Call extends Schema.Class<Call>("@nereid/cluster/Call")({
  /** Names the call in its cluster, so that one that is sent twice is executed once. */
  call: Schema.String,
  /** ModelInferRequest of the v2 protocol. */
  request: Schema.Uint8Array,
  /** Milliseconds to its deadline; absent without a deadline. */
  timeout: Schema.optionalKey(Schema.Number),
}) {}

/** Responses are messages ModelInferResponse of the v2 protocol. */
export const make = (model: string) =>
  Entity.make(`nereid/${model}`, [
    Rpc.make("Infer", { payload: Call, success: Schema.Uint8Array, error: Failure }),
    Rpc.make("Stream", { payload: Call, success: Schema.Uint8Array, error: Failure, stream: true }),
  ])
