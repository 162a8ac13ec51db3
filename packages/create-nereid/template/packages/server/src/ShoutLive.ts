/** The handler of the model. */
import { Model } from "@nereid/core"
import { Shout } from "@nereid-workspace/contract"
import { Effect } from "effect"

export const ShoutLive = Model.each(Shout, ({ TEXT }) => Effect.succeed({ LOUD: TEXT.toUpperCase() }))
