/**
 * Stands between a client and an object store, so that a test can count requests, refuse them, and damage or cut off
 * what the store sends.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, request as send, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** Damage to a reply; undefined for none. */
export type Fault =
  | { readonly type: "unreachable" }
  /** `after`: the reply waits for it. */
  | { readonly type: "refused"; readonly status: number; readonly after?: PromiseLike<unknown> }
  /** The connection ends after so many bytes of the body. */
  | { readonly type: "cut"; readonly after: number }
  /** The last byte of the body is another one. */
  | { readonly type: "damaged" }
  /** The body arrives in so many pieces, with a pause of 20 milliseconds before each. */
  | { readonly type: "slow"; readonly pieces: number }
  /** The store gets the request after this has happened. */
  | { readonly type: "late"; readonly after: PromiseLike<unknown> }
  /** The gate replies instead of the store. */
  | { readonly type: "reply"; readonly status?: number; readonly body: string }
  | undefined

export interface GateRequest {
  readonly method: string
  /** With the query. */
  readonly path: string
  readonly headers: IncomingMessage["headers"]
}

export class StoreGate implements AsyncDisposable {
  readonly requests: Array<GateRequest> = []
  /** Chooses the fault of a request. */
  fault: (request: GateRequest) => Fault = () => undefined
  readonly #server: Server
  readonly #target: number

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((request, response) => this.#receive(request, response))
  }

  /** `target`: port of the store. */
  static async start(target: number): Promise<StoreGate> {
    const gate = new StoreGate(target)
    gate.#server.listen(0, "127.0.0.1")
    await once(gate.#server, "listening")
    return gate
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  #receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = "GET", url: path = "/", headers } = incoming
    const request = { method, path, headers }
    this.requests.push(request)
    const fault = this.fault(request)
    if (fault?.type === "unreachable") return void incoming.socket.destroy()
    if (fault?.type === "refused") {
      return void Promise.resolve(fault.after).then(() => outgoing.writeHead(fault.status).end())
    }
    if (fault?.type === "reply") return void outgoing.writeHead(fault.status ?? 200).end(fault.body)
    void Promise.resolve(fault?.type === "late" ? fault.after : undefined)
      .then(() => this.#ask(request))
      .then(
        ({ status, headers, body }) => answer(outgoing.writeHead(status, headers), body, fault),
        () => outgoing.destroy(),
      )
  }

  async #ask({ method, path, headers }: GateRequest): Promise<Reply> {
    const sent = send({ host: "127.0.0.1", port: this.#target, method, path, headers, agent: false }).end()
    const [reply]: ReadonlyArray<IncomingMessage> = await once(sent, "response")
    if (reply === undefined) throw new Error("The store has not answered")
    const chunks: Array<Buffer> = []
    for await (const chunk of reply) chunks.push(chunk)
    return { status: reply.statusCode ?? 500, headers: reply.headers, body: Buffer.concat(chunks) }
  }
}

interface Reply {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
}

const answer = (outgoing: ServerResponse, body: Buffer, fault: Fault): void => {
  if (fault?.type === "slow") return drip(outgoing, body, Math.ceil(body.length / fault.pieces))
  if (fault?.type === "damaged" && body.length > 0) body[body.length - 1]! ^= 0xff
  if (fault?.type !== "cut") return void outgoing.end(body)
  // A client drops what it has not read when its connection ends.
  outgoing.write(body.subarray(0, fault.after), () => void setTimeout(() => outgoing.destroy(), 200))
}

const drip = (outgoing: ServerResponse, body: Buffer, bytes: number): void => {
  const timer = setInterval(() => {
    outgoing.write(body.subarray(0, bytes))
    body = body.subarray(bytes)
    if (body.length === 0) outgoing.end()
  }, 20)
  outgoing.once("close", () => clearInterval(timer))
}
