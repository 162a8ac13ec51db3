/** Fixture with models behind an HTTP and a gRPC port, for behaviour that both share. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { Effect } from "effect"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as Gateway from "./gateway/Gateway.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import { clients } from "./grpc/GrpcServer.fixture.ts"
import * as HttpServer from "./http/HttpServer.ts"

const free = { host: "127.0.0.1", port: 0 }

/** `get` and `post` request a path over HTTP, `call` calls an RPC over gRPC. */
export const serve = Effect.fnUntraced(function* (
  models: ReadonlyArray<RunningModel>,
  options: Omit<Parameters<typeof Gateway.make>[1], "id" | "version"> = {},
) {
  const gateway = Gateway.make(ModelStore.of(models), { id: "nereid", version: "0", ...options })
  const http = yield* HttpServer.make(gateway, free)
  const grpc = yield* serveGrpc(gateway)
  const call = yield* clients["grpc-js"](grpc)
  const get = (path: string, init: RequestInit = {}) =>
    Effect.promise(async () => {
      const headers = { ...init.headers, connection: "close" }
      const response = await fetch(`http://127.0.0.1:${http.port}${path}`, { ...init, headers })
      const tag = response.headers.get(tagHeader) ?? undefined
      return { status: response.status, tag, text: await response.text() }
    })
  const post = (
    path: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: { readonly [name: string]: string } = {},
  ) => get(path, { method: "POST", body, headers })
  return { get, post, call, grpc }
})

const serveGrpc = Effect.fnUntraced(function* (gateway: Gateway.Gateway) {
  const { port } = yield* GrpcServer.make(gateway, free)
  return { port, authority: `http://127.0.0.1:${port}` }
})
