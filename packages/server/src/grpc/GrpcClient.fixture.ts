/** A client of the inference service with streams, for tests over a real socket. */
import { type Client, ConnectError, createClient } from "@connectrpc/connect"
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"

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
