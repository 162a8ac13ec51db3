/** A repository that callers may load from, as both protocols show it. Nothing here changes what is loaded. */
import type { GrpcCase, HttpCase } from "../Case.ts"
import { storedIndexGrpc, storedIndexHttp } from "./storedIndex.ts"
import { storedLoadsGrpc, storedLoadsHttp } from "./storedLoads.ts"
import { storedReadinessGrpc, storedReadinessHttp } from "./storedReadiness.ts"
import { storedShownGrpc, storedShownHttp } from "./storedShown.ts"

export const storedHttp: ReadonlyArray<HttpCase> = [
  ...storedIndexHttp,
  ...storedLoadsHttp,
  ...storedShownHttp,
  ...storedReadinessHttp,
]

export const storedGrpc: ReadonlyArray<GrpcCase> = [
  ...storedIndexGrpc,
  ...storedLoadsGrpc,
  ...storedShownGrpc,
  ...storedReadinessGrpc,
]
