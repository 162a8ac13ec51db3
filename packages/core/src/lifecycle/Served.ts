/** Records which models each server serves, for the registry (Registry.ts). */
import { Context } from "effect"
import type { CodeModels } from "./CodeModels.ts"

export class Served extends Context.Service<Served, Pick<CodeModels, "include" | "lock">>()("@nereid/core/Served") {}
