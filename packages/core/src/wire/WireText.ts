/** An output of one text for a codec to write: its tensor with a name. */
import { TextTensor } from "../tensor/TextTensor.ts"
import type { Shape } from "../tensor/TypedTensor.ts"
import type { WireTensor } from "./WireRequest.ts"

export class WireText extends TextTensor implements WireTensor {
  readonly name: string

  constructor(name: string, shape: Shape, text: string) {
    super(shape, text)
    this.name = name
  }
}
