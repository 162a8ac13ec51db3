/**
 * Decodes any protobuf message with protobuf-es, to the same values as Google's libraries (KnownFields.ts).
 * PlainRequest.ts and PlainResponse.ts decode the common forms of inference.
 */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf"
import * as KnownFields from "./KnownFields.ts"

/**
 * Decodes a message without its unknown fields. Its bytes are views on the given ones, unless a field is removed.
 * @throws Error if the bytes are not a valid message
 */
export const read = <Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> =>
  fromBinary(schema, KnownFields.select(schema, bytes), { readUnknownFields: false })
