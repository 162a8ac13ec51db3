/** The client with a server in this process, on free ports. */
import assert from "node:assert/strict"
import { test } from "node:test"
import { Server } from "@nereid/server"
import { Shout } from "@nereid-workspace/contract"
import { ShoutLive } from "@nereid-workspace/server"
import { shoutAll } from "./index.ts"

test("the client receives the responses of the server, over gRPC and HTTP", { timeout: 30_000 }, async (t) => {
  const server = await Server.start([Shout], ShoutLive, { http: 0, grpc: 0, metrics: false })
  t.after(() => server.stop())
  for (const url of [`grpc://localhost:${server.grpc.port}`, `http://localhost:${server.http.port}`]) {
    assert.deepEqual(await shoutAll(url, ["hello", "world"]), ["HELLO", "WORLD"])
  }
})
