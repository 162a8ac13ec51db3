/**
 * A BYTES tensor of one text, whose bytes are made when they are read for the first time. A response that is written as
 * JSON, or read in this process, needs only the text. Tensors of several texts are in TypedTensor.ts.
 */
import * as SmallMemory from "./SmallMemory.ts"
import { encodeElements, reshape, type Shape, TypedTensor } from "./TypedTensor.ts"

const encoder = new TextEncoder()
const none = new Uint8Array()

/** Characters up to which a loop is faster than a TextEncoder. */
const shortText = 32

export class TextTensor<S extends Shape = Shape> extends TypedTensor<"BYTES", S> {
  readonly text: string
  #bytes: Uint8Array | undefined

  /** The text must be well-formed, and the shape that of one element. */
  constructor(shape: S, text: string) {
    super("BYTES", shape, none)
    this.text = text
  }

  static {
    // On the prototype: a property of each tensor would cost more than the bytes.
    Object.defineProperty(this.prototype, "bytes", {
      get(this: TextTensor) {
        return (this.#bytes ??= shortAscii(this.text) ?? encodeElements([encoder.encode(this.text)]))
      },
      set() {},
    })
  }
}

/** The tensor for code of users, which may copy its properties: with its bytes among them. */
export const plain = (tensor: TypedTensor): TypedTensor =>
  tensor instanceof TextTensor ? reshape(tensor, tensor.shape) : tensor

/** One element of a short text with one byte per character; undefined for others. */
const shortAscii = (text: string): Uint8Array | undefined => {
  if (text.length > shortText) return undefined
  const bytes = SmallMemory.allocate(4 + text.length)
  bytes[0] = text.length
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code >= 0x80) return undefined
    bytes[4 + index] = code
  }
  return bytes
}
