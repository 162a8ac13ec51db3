/** The streams that the page of a server reads. */
import { Effect, type Scope } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
import * as LiveView from "./LiveView.ts"
import * as LogView from "./LogView.ts"

export interface DashboardStreams {
  readonly live: Pick<LiveView.LiveView, "open">
  readonly log: Pick<LogView.LogView, "open">
}

/** Until the scope closes. */
export const make = (gateway: Gateway): Effect.Effect<DashboardStreams, never, Scope.Scope> =>
  Effect.all({ live: LiveView.make(gateway), log: LogView.make(gateway) })
