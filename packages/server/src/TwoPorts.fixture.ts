/** Models behind an HTTP and a gRPC port, for what both must say alike. No test is in here. */
import { Effect } from "effect"
import { Registry } from "@nereid/core"
import { tagHeader } from "@nereid/core/Errors"
import type { RunningModel } from "@nereid/core/RunningModel"
import * as Gateway from "./Gateway.ts"
import * as GrpcServer from "./GrpcServer.ts"
import { clients } from "./GrpcServer.fixture.ts"
import * as HttpServer from "./HttpServer.ts"

const free = { host: "127.0.0.1", port: 0 }

/** `get` asks a path over HTTP, `call` an RPC over gRPC. */
export const serve = Effect.fnUntraced(function* (models: ReadonlyArray<RunningModel>) {
  const gateway = Gateway.make(Registry.make(models), { id: "nereid", version: "0" })
  const http = yield* HttpServer.make(gateway, free)
  const call = yield* clients["grpc-js"](yield* serveGrpc(gateway))
  const get = (path: string) =>
    Effect.promise(async () => {
      const response = await fetch(`http://127.0.0.1:${http.port}${path}`, { headers: { connection: "close" } })
      const tag = response.headers.get(tagHeader) ?? undefined
      return { status: response.status, tag, text: await response.text() }
    })
  return { get, call }
})

const serveGrpc = Effect.fnUntraced(function* (gateway: Gateway.Gateway) {
  const { port } = yield* GrpcServer.make(gateway, free)
  return { port, authority: `http://127.0.0.1:${port}` }
})
