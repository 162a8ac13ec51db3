/**
 * A client with the types that openapi-typescript generates from the document, as a program: main.ts generates its
 * types, compiles this file with it, and runs it. The argument is the address of the server.
 */
import { deepEqual, equal } from "node:assert/strict"
import createClient from "openapi-fetch"
import type { components, paths } from "./Api.ts"

const [, , baseUrl = ""] = process.argv
const client = createClient<paths>({ baseUrl })

const rate = await client.POST("/v2/models/rate/generate", { body: { TEXT: "hello", WEIGHTS: [1, 0.5], factor: 2 } })
const label: 0 | 1 | undefined = rate.data?.LABEL
const scores: ReadonlyArray<number> | undefined = rate.data?.SCORES
deepEqual([label, scores], [0, [2, 1]])

// @ts-expect-error TEXT is required
await client.POST("/v2/models/rate/generate", { body: { WEIGHTS: [1, 1] } })
// @ts-expect-error TEXT is a text
await client.POST("/v2/models/rate/generate", { body: { TEXT: 1 } })
// @ts-expect-error no model has this name
await client.POST("/v2/models/other/generate", { body: {} })

const sums = await client.POST("/v2/models/add_sub/infer", {
  params: { header: { "nereid-timeout-ms": 10_000 } },
  body: {
    inputs: [
      { name: "A", datatype: "INT32", shape: [1, 2], data: [5, 6] },
      { name: "B", datatype: "INT32", shape: [1, 2], data: [[1, 2]] },
    ],
    outputs: [{ name: "SUM" }],
  },
})
const [sum] = sums.data?.outputs ?? []
const elements: ReadonlyArray<number> | undefined = sum?.data
deepEqual([sum?.name, sum?.shape, elements], ["SUM", [1, 2], [6, 8]])

const wrong = { name: "A", datatype: "FP32", shape: [1, 2], data: [1, 2] } as const
// @ts-expect-error the datatype is INT32
await client.POST("/v2/models/add_sub/infer", { body: { inputs: [wrong] } })

const refused = await client.POST("/v2/models/rate/generate", { body: { TEXT: "x".repeat(41) } })
const message: string | undefined = refused.error?.error
deepEqual([refused.response.status, message], [413, "TooLong: at most 40 characters"])
equal(refused.response.headers.get("nereid-error"), "TooLong")
const fields: components["schemas"]["rate.1.TooLongEncoded"] = JSON.parse(
  refused.response.headers.get("nereid-error-detail") ?? "",
)
deepEqual([fields._tag, fields.limit], ["TooLong", 40])

const unknown = await client.GET("/v2/models/{model_name}", { params: { path: { model_name: "other" } } })
deepEqual([unknown.response.status, typeof unknown.error?.error], [404, "string"])

const letters = await client.POST("/v2/models/letters/generate_stream", { body: { TEXT: "ab" }, parseAs: "text" })
const events = String(letters.data).trim().split("\n\n")
const responses = events.map((event): components["schemas"]["letters.1.GenerateResponse"] =>
  JSON.parse(event.replace("data: ", "")),
)
deepEqual(
  responses.map(({ LETTER }) => LETTER),
  ["a", "b"],
)

const route = await client.POST("/rate", { body: { TEXT: "hello" } })
const name: "short" | "long" | undefined = route.data?.LABEL
equal(name, "short")

const greeted = await client.POST("/v2/models/greet%3A%20you%20%26%20me%3F/generate", {
  body: { PERSON: JSON.stringify({ name: "Ada", age: 36 }), PAIR: [1, 2] },
})
deepEqual(greeted.data?.PAIR, [1, 2])

const ready = await client.GET("/v2/health/ready")
equal(ready.response.status, 200)

const live = await client.GET("/live", { parseAs: "stream" })
let opened = ""
for await (const chunk of live.response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
  opened += chunk
  if (opened.includes("\n\n")) break
}
const opening: components["schemas"]["LiveMessage"] = JSON.parse(opened.split("\n\n")[0]?.replace("data: ", "") ?? "")
const control = opening.type === "opening" ? opening.server.control : undefined
equal(control, "explicit")

console.log("The typed client works")
