/** Readers of event streams that stop for a while: the stream goes on once they read again. */
import { assert, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { Effect, Layer } from "effect"
import { type IncomingMessage, request as httpRequest } from "node:http"
import * as Gateway from "../gateway/Gateway.ts"
import * as HttpServer from "./HttpServer.ts"

const events = 2000

/** As many events of one text. */
class Poem extends Model.Service<Poem>()("poem", {
  inputs: { VERSE: Tensor.utf8() },
  outputs: { VERSE: Tensor.utf8() },
}) {}

const open = (port: number, VERSE: string) =>
  Effect.callback<IncomingMessage>((resume) => {
    const path = "/v2/models/poem/generate_stream"
    const request = httpRequest({ host: "127.0.0.1", port, path, method: "POST" }, (response) =>
      resume(Effect.succeed(response)),
    )
    request.end(JSON.stringify({ VERSE }))
  })

const isLive = (port: number) =>
  Effect.promise(async () => void (await (await fetch(`http://127.0.0.1:${port}/v2/health/live`)).arrayBuffer()))

/** Bytes of the whole body. */
const size = (response: IncomingMessage) =>
  Effect.promise(async () => {
    let bytes = 0
    for await (const chunk of response) bytes += chunk.length
    return bytes
  })

it.live.each([
  ["ASCII", "x".repeat(9000)],
  ["two bytes", "é".repeat(9000)],
  ["three bytes", "字".repeat(30)],
  ["four bytes", "\u{1f600}".repeat(500)],
] as const)("characters of %s", ([, verse]) =>
  Effect.gen(function* () {
    let produced = 0
    const PoemLive = Model.stream(Poem, async function* (sample) {
      for (; produced < events; produced++) yield sample
    })
    const { model } = yield* Poem.pipe(Effect.provide(yield* Layer.build(PoemLive)))
    const gateway = Gateway.make(ModelStore.of([model]), { id: "nereid", version: "0" })
    const { port } = yield* HttpServer.make(gateway, { host: "127.0.0.1", port: 0 })
    const response = yield* open(port, verse)
    // Once buffers are full, nothing more is produced: two observations, other responses apart, show it.
    for (let before = -1; before < produced;) {
      before = produced
      for (let count = 0; count < 20; count++) yield* isLive(port)
    }
    const document = JSON.stringify({ model_name: "poem", model_version: "1", VERSE: verse })
    assert.strictEqual(yield* size(response), events * Buffer.byteLength(`data: ${document}\n\n`))
  }),
)
