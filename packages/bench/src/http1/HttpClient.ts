/**
 * A few HTTP requests, each on a connection of its own, their replies read in full: what a load has to know of a server
 * before and after it. Not for the load itself.
 */
import * as Address from "../target/Address.ts"
import * as HttpRequest from "./HttpRequest.ts"
import { type Reply, ReplyReader } from "./ReplyReader.ts"

/** A first request may have to wait until its model is warm. */
const patience = 60_000

/** @throws Error where there is no reply; one with any status is none */
export const ask = async (address: Address.Address, request: HttpRequest.HttpRequest): Promise<Reply> => {
  const socket = await Address.connect(address, "http/1.1")
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const fail = (why: string) => reject(new Error(`${request.method} ${request.path}: ${why}`))
  const reader = new ReplyReader(true, resolve)
  socket.on("data", (chunk: Buffer) => {
    const problem = reader.read(chunk)
    if (problem !== undefined) fail(problem)
  })
  socket.on("error", (error) => fail(error.message))
  socket.on("end", () => {
    if (!reader.end()) fail("the server closed the connection")
  })
  const timer = setTimeout(() => fail(`no reply within ${patience / 1000} s`), patience)
  socket.write(HttpRequest.encode(address, request))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}
