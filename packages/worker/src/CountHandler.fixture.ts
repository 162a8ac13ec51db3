/** A decoupled handler. No test is in here. */
import { Model } from "@nereid/core"
import { Effect } from "effect"
import { Count } from "./Command.fixture.ts"

let pulled = 0

export default Model.stream(
  Count,
  Effect.succeed(async function* ({ TO }: Model.Sample<(typeof Count)["definition"]["inputs"]>) {
    for (let N = 1; N <= TO; N++) yield { N, PULLED: (pulled += 1) }
    if (TO < 0) throw new Error("below zero")
  }),
)
