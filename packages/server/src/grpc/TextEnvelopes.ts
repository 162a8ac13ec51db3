/** The messages of a gRPC-Web body in text. GrpcWebText.ts translates such bodies. */
import { Base64Decoder } from "./Base64Decoder.ts"
import { Envelopes } from "./Envelopes.ts"

/** The content type, which the encoding of messages may follow. */
export const text = "application/grpc-web-text"

/** Whether a content type is that of gRPC-Web in text, in any encoding of messages. */
export const isText = (contentType = ""): boolean => contentType.startsWith(text)

/** Counts the messages of a body in text. */
export class TextEnvelopes extends Envelopes {
  readonly #decoder = new Base64Decoder()

  override add(chunk: Uint8Array): void {
    super.add(this.#decoder.decode(chunk) ?? nothing)
  }
}

const nothing = new Uint8Array()
