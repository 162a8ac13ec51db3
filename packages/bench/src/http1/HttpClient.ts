/**
 * HTTP requests for information about the server, before and after a load, each on a separate connection. The load
 * itself uses other modules.
 */
import * as Address from "../target/Address.ts"
import * as HttpRequest from "./HttpRequest.ts"
import { type HttpReply, ReplyReader } from "./ReplyReader.ts"

/** Timeout in milliseconds; a first request may wait for the model's warm-up. */
const callTimeout = 60_000

/**
 * Sends a request. A reply with any HTTP status is not an error.
 * @throws Error if there is no reply
 */
export const send = async (address: Address.Address, request: HttpRequest.HttpRequest): Promise<HttpReply> => {
  const socket = await Address.connect(address, "http/1.1")
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
  const fail = (reason: string) => reject(new Error(`${request.method} ${request.path}: ${reason}`))
  const reader = new ReplyReader(true, resolve)
  socket.on("data", (chunk: Buffer) => {
    const problem = reader.read(chunk)
    if (problem !== undefined) fail(problem)
  })
  socket.on("error", (error) => fail(error.message))
  socket.on("end", () => {
    if (!reader.end()) fail("the server closed the connection")
  })
  const timer = setTimeout(() => fail(`no response within ${callTimeout / 1000} s`), callTimeout)
  socket.write(HttpRequest.encode(address, request))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}
