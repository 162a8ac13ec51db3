/** The sequences of a model in code as `sequence_batching` of the protocol. */
import type { MessageInitShape } from "@bufbuild/protobuf"
import { Duration } from "effect"
import type { Batching } from "../model/Batching.ts"
import type { ControlTensor, Sequencing } from "../model/Sequencing.ts"
import type { DataType as TensorDataType } from "../tensor/DataType.ts"
import {
  DataType,
  ModelSequenceBatching_Control_Kind as Kind,
  type ModelSequenceBatchingSchema,
} from "@nereid/protocol/model_config"

const maxInt32 = 2 ** 31 - 1

/** Any instance executes any request of a model in code: `oldest` is the strategy that comes closest. */
export const make = (
  { strategy, maxIdle, controls, states, isIterative }: Sequencing,
  { preferredBatchSizes, maxQueueDelay }: Batching,
  maxBatchSize: number,
): MessageInitShape<typeof ModelSequenceBatchingSchema> => ({
  strategyChoice: {
    case: "oldest",
    value: {
      maxCandidateSequences: Math.min(strategy.slots, maxInt32),
      preferredBatchSize:
        preferredBatchSizes.length === 0 && maxBatchSize > 0 ? [maxBatchSize] : [...preferredBatchSizes],
      maxQueueDelayMicroseconds: BigInt(Math.round(Duration.toMillis(maxQueueDelay) * 1000)),
    },
  },
  // The protocol has no sequences without a limit.
  maxSequenceIdleMicroseconds: BigInt(Math.min(Math.round(maxIdle / 1e3), Number.MAX_SAFE_INTEGER)),
  controlInput: controls.map((control) => ({ name: control.name, control: [controlOf(control)] })),
  state: states.map(({ input, output, datatype, dims }) => ({
    inputName: input,
    outputName: output,
    dataType: dataTypeOf(datatype),
    dims: dims.map(BigInt),
  })),
  iterativeSequence: isIterative,
})

const controlOf = (control: ControlTensor) => {
  if (control.kind === "CORRID") {
    return { kind: Kind.CONTROL_SEQUENCE_CORRID, dataType: dataTypeOf(control.datatype) }
  }
  const kind = Kind[`CONTROL_SEQUENCE_${control.kind}`]
  const values = [control.falseValue, control.trueValue]
  if (control.datatype === "FP32") return { kind, fp32FalseTrue: values }
  if (control.datatype === "BOOL") return { kind, boolFalseTrue: values.map(Boolean) }
  return { kind, int32FalseTrue: values }
}

const dataTypeOf = (datatype: TensorDataType): DataType =>
  datatype === "BYTES" ? DataType.TYPE_STRING : DataType[`TYPE_${datatype}`]
