/**
 * Refuses a call by the first bytes of its message, which name the model, if the queue of that model is full, or too
 * long to answer it in time. The rest of the message is neither decoded nor kept.
 */
import { Result } from "effect"
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import * as RequestModel from "@nereid/core/internal/codec/protobuf/RequestModel"
import type { Gateway } from "../gateway/Gateway.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import * as CallStatus from "./CallStatus.ts"

/** The status of a refused call, by the first chunk of its message; undefined if it goes on. */
export const refusal = (
  gateway: Pick<Gateway, "model">,
  chunk: Uint8Array,
  deadline: number | undefined,
  memory: HeldMemory,
): CallStatus.CallStatus | undefined => {
  const model = RequestModel.read(chunk, prefixLength, chunk.length)
  if (model === undefined) return undefined
  const found = gateway.model(model.name, model.version)
  if (Result.isFailure(found)) return undefined
  const id = () => RequestModel.id(chunk, model, chunk.length)
  const error = found.success.calls.preview?.(deadline, memory, id)
  return error && CallStatus.fromError(error)
}
