/** Counters of a server under test, from its metrics and statistics, and waiting for their values. */
import { setImmediate } from "node:timers/promises"
import { assert } from "@effect/vitest"
import type { Connections } from "./Connections.ts"
import { parse } from "./JsonText.ts"

type Connected = Connections["Service"]

/** Which server; default the normal one. */
type ServerName = keyof Connected["servers"]

/** A value of /metrics, of a model's first version. */
export const metric = async (
  connections: Connected,
  name: string,
  model: string,
  more = "",
  server: ServerName = "normal",
): Promise<number> => {
  const connection = await connections.http(server, "metrics")
  const { body } = await connection.request({ path: "/metrics" })
  const line = `${name}{model="${model}"${more},version="1"} `
  const found = body
    .toString()
    .split("\n")
    .find((text) => text.startsWith(line))
  return found === undefined ? Number.NaN : Number(found.slice(line.length))
}

/** Polls until the condition holds; the timeout of the test limits it. */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await setImmediate()
}

/** Counters of a model: what its metrics say, which its statistics must say too. */
export const counters = async (connections: Connected, model: string, server: ServerName = "normal") => {
  const connection = await connections.http(server)
  const { body } = await connection.request({ path: `/v2/models/${model}/stats` })
  const statistics = JSON.stringify(parse(body.toString()))
  const number = (pattern: RegExp) => Number(pattern.exec(statistics)?.[1])
  const reason = (name: string) =>
    metric(connections, "nv_inference_request_failure", model, `,reason="${name}"`, server)
  const reasons = await Promise.all(["REJECTED", "CANCELED", "BACKEND", "OTHER"].map(reason))
  const counted = {
    success: await metric(connections, "nv_inference_request_success", model, "", server),
    rows: await metric(connections, "nv_inference_count", model, "", server),
    executions: await metric(connections, "nv_inference_exec_count", model, "", server),
    reasons,
  }
  assert.strictEqual(number(/"inference_count":\{"number":"([0-9]+)"/), counted.rows)
  assert.strictEqual(number(/"execution_count":\{"number":"([0-9]+)"/), counted.executions)
  assert.strictEqual(number(/"success":\{"count":\{"number":"([0-9]+)"/), counted.success)
  assert.strictEqual(
    number(/"fail":\{"count":\{"number":"([0-9]+)"/),
    reasons.reduce((sum, count) => sum + count, 0),
  )
  return counted
}
