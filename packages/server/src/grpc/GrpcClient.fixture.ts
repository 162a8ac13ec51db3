/** Clients of connect-node for tests over a real socket. */
import { type Client, ConnectError, createClient } from "@connectrpc/connect"
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node"
import { Effect, type Scope } from "effect"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"

/** Options of a transport of connect-node over one HTTP/2 connection. */
export interface Connection {
  readonly baseUrl: string
  readonly httpVersion: "2"
  readonly sessionManager: Http2SessionManager
}

/**
 * An HTTP/2 connection that closes with the scope, hence before a server that the scope started earlier. A server that
 * stops first sends a GOAWAY; if the idle timeout of connect-node then elapses, its error has no listener any more.
 */
export const connection = (
  baseUrl: string,
  options?: ConstructorParameters<typeof Http2SessionManager>[2],
): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Http2SessionManager(baseUrl, undefined, options)),
    (sessionManager) => Effect.sync(() => sessionManager.abort()),
  ).pipe(Effect.map((sessionManager) => ({ baseUrl, httpVersion: "2", sessionManager })))

/** A client of the inference service with streams. */
export interface GrpcClient {
  readonly rpc: Client<typeof GRPCInferenceService>
  /** Closes its connection. */
  readonly close: () => void
}

export const connect = (authority: string): GrpcClient => {
  const sessionManager = new Http2SessionManager(authority)
  const transport = createGrpcTransport({ baseUrl: authority, sessionManager })
  return { rpc: createClient(GRPCInferenceService, transport), close: () => sessionManager.abort() }
}

/** The code and the message of a failed RPC. */
export const failureOf = async (call: Promise<unknown>): Promise<{ code: number; message: string }> => {
  try {
    await call
  } catch (error) {
    if (error instanceof ConnectError) return { code: error.code, message: error.rawMessage }
    throw error
  }
  throw new Error("the call succeeded")
}
