/** Where servers say which models they serve, for the registry (Registry.ts). */
import { Context } from "effect"
import type { CodeModels } from "./CodeModels.ts"

export class Served extends Context.Service<Served, Pick<CodeModels, "include" | "lock">>()("@nereid/core/Served") {}
