/** The model in this process, without a server. */
import assert from "node:assert/strict"
import { test } from "node:test"
import * as Testing from "@nereid/core/Testing"
import { ShoutLive } from "./ShoutLive.ts"

test("the model answers in upper case", async (t) => {
  const shout = await Testing.start(ShoutLive)
  t.after(() => shout.close())
  assert.deepEqual(await shout.infer({ TEXT: "hello" }), { LOUD: "HELLO" })
})
