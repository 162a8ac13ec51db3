/**
 * Field type of a JPEG or PNG picture, for contracts. The value is the unchanged bytes of the file; servers decode them
 * with Pixels.ts.
 */
import { Tensor } from "@nereid/core"
import { Schema, SchemaTransformation } from "effect"

const beginnings = [Uint8Array.of(0xff, 0xd8, 0xff), Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)]

const isPicture = (bytes: Uint8Array): boolean =>
  beginnings.some((beginning) => beginning.every((byte, index) => bytes[index] === byte))

/** A PNG of 32x32 pixels that shows a 7, for example requests and warm-ups. */
const example = Uint8Array.from(
  atob(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAAMElEQVR42mP4DwQMBIgGRhTi/0MQcRhOtMMJfjghDyT+wYk/9jDiRz2c+A8j8FkOAHZJcmDwFJG+AAAAAElFTkSuQmCC",
  ),
  (character) => character.charCodeAt(0),
)

/**
 * Field of a picture: BYTES [1] on the wire, a Uint8Array in code. Without the signature of a JPEG or PNG file, it is
 * an InvalidRequest.
 */
export const field = Tensor.BYTES(1).pipe(
  Schema.decodeTo(
    Schema.Uint8Array,
    SchemaTransformation.transform({
      decode: ({ data: [bytes = new Uint8Array()] }) => bytes,
      encode: (bytes) => Tensor.make("BYTES", [1], [bytes]),
    }),
  ),
  Schema.check(
    Schema.makeFilter(
      (bytes) =>
        isPicture(bytes) || `expected the bytes of a JPEG or PNG file, got ${bytes.length} bytes of another kind`,
    ),
  ),
  Schema.annotate({ examples: [example] }),
)
