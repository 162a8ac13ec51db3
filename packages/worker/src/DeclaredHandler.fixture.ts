/** A handler that fails with an error that its model declares. No test is in here. */
import { Model } from "@nereid/core"
import { Effect } from "effect"
import { Declaring, Refused } from "./Declaring.fixture.ts"

export default Model.each(Declaring, ({ x }, { setParameter }) =>
  Effect.gen(function* () {
    if (x < 0) return yield* new Refused({ least: 0, given: x })
    yield* setParameter("root", Math.sqrt(x))
    return { y: x }
  }),
)
