/** A handler whose initialize fails, or never ends where there is a GPU. No test is in here. */
import { InstanceContext, Model } from "@nereid/core"
import { Effect } from "effect"
import { Command } from "./Command.fixture.ts"

export default Model.each(
  Command,
  Effect.flatMap(InstanceContext, ({ kind }) => (kind === "GPU" ? Effect.never : Effect.fail(new Error("no weights")))),
)
