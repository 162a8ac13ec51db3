/** A server that listens, as a service. How it comes to listen is in OpenServer.ts. */
import { Context } from "effect"
import type { IndexEntry } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { Address } from "./port/HttpListener.ts"

export type { Address }

/** A server that listens. */
export class Server extends Context.Service<
  Server,
  {
    /** Where it listens; undefined for what is turned off. */
    readonly http: Address | undefined
    readonly grpc: Address | undefined
    /** Of everything on one port. */
    readonly port: Address | undefined
    readonly metrics: Address | undefined
    /** Those of now, where a repository puts some in and takes some out. */
    readonly models: ReadonlyArray<RunningModel>
    /** Every model there is, also those of a repository that are not loaded. */
    readonly index: () => ReadonlyArray<IndexEntry>
    readonly isReady: () => boolean
  }
>()("@nereid/server/Server") {}
