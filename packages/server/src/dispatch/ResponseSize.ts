/** Memory that a response holds until it has been sent, in bytes, without its texts. */
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"

export const of = ({ id, outputs }: WireResponse): number => {
  let size = id.length
  for (const { bytes } of outputs) size += bytes.length
  return size
}
