/** Fixture: a handler whose initialize fails, or never ends if the instance is on a GPU. */
import { InstanceContext, Model } from "@nereid/core"
import { Effect } from "effect"
import { Command } from "./Command.fixture.ts"

export default Model.each(
  Command,
  Effect.flatMap(InstanceContext, ({ kind }) => (kind === "GPU" ? Effect.never : Effect.fail(new Error("no weights")))),
)
