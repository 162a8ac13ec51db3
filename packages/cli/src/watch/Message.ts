/** Messages between the supervisor of `nereid serve --watch` and the processes that serve, the versions. */
import type { Address } from "@nereid/server/internal/port/PortSource"

/** A port, by its name and address: the same for every version. */
export type PortId = string

export type FromVersion =
  /** Requests a port. The reply is `listening` or `refused`. */
  | { readonly type: "listen"; readonly id: PortId; readonly address: Address }
  /** Files of the project that the module imports, or that it fails to import. */
  | { readonly type: "imported"; readonly paths: ReadonlyArray<string> }
  /** The models are loaded, and the server accepts requests. */
  | { readonly type: "ready" }

export type ToVersion =
  | { readonly type: "listening"; readonly id: PortId; readonly address: Address }
  | { readonly type: "refused"; readonly id: PortId; readonly reason: string }
  /** A connection of the port; its socket comes with the message. */
  | { readonly type: "connection"; readonly id: PortId }
  /** Another version accepts the requests from now on. */
  | { readonly type: "replaced" }
  | { readonly type: "signal"; readonly signal: NodeJS.Signals }
