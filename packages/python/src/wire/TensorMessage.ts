/** Tensors of a frame: their descriptions in the header, and their bytes in the body. */
import type { DataType } from "@nereid/core/internal/tensor/DataType"
import { isDataType } from "@nereid/core/internal/tensor/DataType"
import type { Request } from "@nereid/core/internal/request/Request"
import type { SharedBytes } from "@nereid/core/internal/tensor/SharedBytes"
import * as SharedTensor from "@nereid/core/internal/tensor/SharedTensor"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { TypedTensor, type Shape } from "@nereid/core/internal/tensor/TypedTensor"
import { aligned } from "./FrameBody.ts"
import { integer, isRecord, list, text } from "./Header.ts"

/** A tensor that a model process has sent. */
export interface ReceivedTensor {
  readonly name: string
  readonly tensor: TypedTensor
}

/** The constant beginning of the descriptions of a tensor: its name and datatype. */
export const prefix = ({ name, datatype }: Pick<TensorSpec, "name" | "datatype">): string =>
  `{"n":${JSON.stringify(name)},"t":"${datatype}","s":[`

/** The description of a tensor of this shape and number of bytes. */
export const description = (start: string, shape: Shape, bytes: number): string => `${start}${shape}],"b":${bytes}}`

/** The description of a tensor in shared memory, which the process maps. */
export const sharedDescription = (start: string, shape: Shape, shared: SharedBytes): string =>
  `${start}${shape}],"b":${shared.length},"m":${place(shared)}}`

/** Where a process finds shared memory. */
export const place = ({ path, inode, offset }: SharedBytes): string => `[${JSON.stringify(path)},${inode},${offset}]`

/**
 * The tensors that descriptions announce, as views of the body. They lie one behind another, from an aligned offset.
 */
export class TensorReader {
  readonly #body: Uint8Array
  #offset = 0

  constructor(body: Uint8Array) {
    this.#body = body
  }

  /**
   * `targets`: shared memory for tensors by their names, where the process may have written them.
   * @throws Error if a description is wrong, or if the body is too short
   */
  read(descriptions: ReadonlyArray<unknown>, targets?: Request["targets"]): ReadonlyArray<ReceivedTensor> {
    const tensors: Array<ReceivedTensor> = []
    for (const given of descriptions) tensors.push(this.#readOne(given, targets))
    return tensors
  }

  /** Bytes of the next part of the body. */
  bytes(length: number): Uint8Array {
    const from = aligned(this.#offset)
    this.#offset = from + length
    if (this.#offset > this.#body.length) {
      throw new Error(`the tensors of a frame need ${this.#offset} bytes, but its body has ${this.#body.length}`)
    }
    // Not `subarray`, which would make a Buffer of a Buffer.
    return new Uint8Array(this.#body.buffer, this.#body.byteOffset + from, length)
  }

  #readOne(given: unknown, targets: Request["targets"]): ReceivedTensor {
    if (!isRecord(given)) throw new Error("a frame describes a tensor by something that is not an object")
    const [name, datatype, length] = [text(given, "n"), datatypeOf(text(given, "t")), integer(given, "b")]
    const shape = list(given, "s")
    if (name === undefined || datatype === undefined || length === undefined || length < 0 || !isShape(shape)) {
      throw new Error(`a frame has a wrong description of a tensor: ${JSON.stringify(given).slice(0, 200)}`)
    }
    // A copy of the shape, because frames of the same text share their fields.
    if (given["m"] === undefined) return { name, tensor: new TypedTensor(datatype, [...shape], this.bytes(length)) }
    const target = targets?.get(name)
    if (target === undefined || length > target.length) throw new Error(`tensor '${name}' has no shared memory`)
    return { name, tensor: SharedTensor.make(datatype, [...shape], { ...target, length }) }
  }
}

const datatypeOf = (name: string | undefined): DataType | undefined =>
  name !== undefined && isDataType(name) ? name : undefined

const isShape = (shape: ReadonlyArray<unknown>): shape is ReadonlyArray<number> =>
  shape.every((extent) => typeof extent === "number" && Number.isSafeInteger(extent) && extent >= 0)
