/** A reply of one message on a stream of bare node:http2, the cheapest way that there is with its public interface. */
import type { ServerHttp2Stream } from "node:http2"

const headers = [":status", "200", "content-type", "application/grpc"]
const options = { waitForTrailers: true, sendDate: false }
const trailers = { "grpc-status": "0" }

function sendTrailers(this: ServerHttp2Stream) {
  this.sendTrailers(trailers)
}

/** Sends a message that includes its prefix. */
export const send = (stream: ServerHttp2Stream, message: Buffer): void => {
  stream.on("wantTrailers", sendTrailers)
  stream.respond(headers, options)
  stream.end(message)
}
