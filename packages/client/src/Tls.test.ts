/** grpcs:// and https:// to servers with a certificate that only the client's `tls.ca` trusts. */
import { once } from "node:events"
import { createServer as createPlainServer } from "node:http"
import { createSecureServer, createServer as createPlainHttp2Server, type ServerHttp2Stream } from "node:http2"
import { createServer } from "node:https"
import type { AddressInfo, Server } from "node:net"
import { expect, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import { authority } from "../../../test/fixtures/certificate.ts"
import * as Client from "./Client.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { X: Tensor.scalar("FP32") },
}) {}

const trusted = authority()

const { cert, key } = trusted.issue("server")

/** Servers that identify themselves by an error. Any HTTP response shows that TLS works. */
const servers: { readonly [scheme: string]: () => Server } = {
  grpcs: () =>
    createSecureServer({ cert, key }).on("stream", (stream: ServerHttp2Stream) => {
      stream.on("error", () => {})
      const headers = {
        ":status": 200,
        "content-type": "application/grpc",
        "grpc-status": "5",
        "grpc-message": "over TLS",
      }
      stream.respond(headers, { endStream: true })
    }),
  https: () => createServer({ cert, key }, (_, response) => response.writeHead(404).end(`{"error":"over TLS"}`)),
}

it.each(Object.entries(servers))("%s://", async (scheme, make) => {
  const server = make().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const call = async (tls: Client.TlsOptions) => {
    await using client = await Client.connect(Echo, { url: `${scheme}://localhost:${port}`, tls })
    return await client.infer({ X: 1 }).catch((error: Error) => error)
  }
  expect(await call({ ca: trusted.cert })).toMatchObject({ _tag: "ModelNotFound", message: "over TLS" })
  expect(await call({ rejectUnauthorized: false })).toMatchObject({ _tag: "ModelNotFound" })
  expect(await call({})).toMatchObject({
    _tag: "Unavailable",
    message: expect.stringMatching(
      new RegExp(`cannot reach localhost:${port}: unable to verify the first certificate`),
    ),
  })
  server.close()
})

const plain: { readonly [scheme: string]: () => Server } = {
  grpcs: () => createPlainHttp2Server(),
  https: () => createPlainServer(),
}

it.each(Object.entries(plain))(
  "%s:// to a server without TLS says so, without OpenSSL's own text",
  async (scheme, make) => {
    const server = make().listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    await using client = await Client.connect(Echo, { url: `${scheme}://localhost:${port}` })
    expect(await client.infer({ X: 1 }).catch((error: Error) => error)).toMatchObject({
      _tag: "Unavailable",
      message: `cannot reach localhost:${port}: TLS failed (wrong version number); the server may not use TLS`,
    })
    server.close()
  },
)
