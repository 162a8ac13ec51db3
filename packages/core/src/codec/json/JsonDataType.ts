/** The datatypes with a JSON form: all except the two 16-bit floats, which require binary data. */
import { InvalidRequest } from "../../error/InferenceError.ts"
import type { DataType } from "../../tensor/DataType.ts"

export type JsonDataType = Exclude<DataType, "FP16" | "BF16">

export const hasJsonForm = (datatype: DataType): datatype is JsonDataType => datatype !== "FP16" && datatype !== "BF16"

export const noJsonForm = (kind: "input" | "output", name: string, datatype: DataType) => {
  const advice = `Please use the binary data format for ${kind} ${name}`
  return new InvalidRequest({ message: `receiving ${datatype} data via JSON is not supported. ${advice}` })
}
