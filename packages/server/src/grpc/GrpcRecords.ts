/**
 * Log records of the calls that Connect handles: an interceptor around all others, and the record in the call's
 * context.
 */
import { Code, ConnectError, createContextKey, type Interceptor, type StreamResponse } from "@connectrpc/connect"
import type { CallRecord, CallRecords } from "../log/CallRecord.ts"
import * as CallStatus from "./CallStatus.ts"

/** Context key of the call's record; undefined if none is kept. */
export const record = createContextKey<CallRecord | undefined>(undefined)

export const recorded =
  (records: CallRecords): Interceptor =>
  (next) =>
  async (request) => {
    const call = records.begin(request.stream ? undefined : "GRPC")
    if (call === undefined) return next(request)
    const end = (status: string) => call.end(`${request.service.typeName}/${request.method.name}`, status)
    request.contextValues.set(record, call)
    try {
      const response = await next(request)
      if (response.stream) return { ...response, message: ended(response.message, end) }
      end("OK")
      return response
    } catch (error) {
      end(status(error))
      throw error
    }
  }

/** The call ends with its messages. */
async function* ended(messages: StreamResponse["message"], end: (status: string) => void): StreamResponse["message"] {
  try {
    yield* messages
    end("OK")
  } catch (error) {
    end(status(error))
    throw error
  } finally {
    // The client stopped reading before the end.
    end("CANCELLED")
  }
}

const status = (error: unknown): string => CallStatus.name(error instanceof ConnectError ? error.code : Code.Unknown)
