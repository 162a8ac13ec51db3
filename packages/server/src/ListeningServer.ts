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
    /** Address of the HTTP listener; undefined if it is off. */
    readonly http: Address | undefined
    readonly grpc: Address | undefined
    /** Address of the listener for all protocols. */
    readonly port: Address | undefined
    readonly metrics: Address | undefined
    /** Current models; a repository may add and remove models. */
    readonly models: ReadonlyArray<RunningModel>
    /** Every model there is, also those of a repository that are not loaded. */
    readonly index: () => ReadonlyArray<IndexEntry>
    readonly isReady: () => boolean
  }
>()("@nereid/server/Server") {}
