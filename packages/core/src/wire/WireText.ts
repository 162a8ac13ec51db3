/** An output of one text for a codec to write: the tensor under its name. Its bytes are made when they are read. */
import type { TextTensor } from "../tensor/TextTensor.ts"
import type { WireTensor } from "./WireRequest.ts"

export class WireText implements WireTensor {
  readonly name: string
  readonly #tensor: TextTensor

  constructor(name: string, tensor: TextTensor) {
    this.name = name
    this.#tensor = tensor
  }

  get datatype(): string {
    return this.#tensor.datatype
  }

  get shape(): ReadonlyArray<number> {
    return this.#tensor.shape
  }

  get bytes(): Uint8Array {
    return this.#tensor.bytes
  }

  get text(): string {
    return this.#tensor.text
  }
}
