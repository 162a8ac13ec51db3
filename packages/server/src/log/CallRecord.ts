/**
 * Records of calls: a line in a verbose log, and traces of their requests. With neither turned on, a call costs one
 * check.
 */
import { Effect } from "effect"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { Port, RequestTrace } from "../trace/RequestTrace.ts"
import type { Tracing } from "../trace/Tracing.ts"
import { CallLine, type CallLineFields } from "./CallLine.ts"
import type { LogControl } from "./LogSettings.ts"

/** A call in progress. */
export interface CallRecord {
  /** Adds a request of the call; returns the request with its trace. */
  readonly addRequest: (wire: WireRequest) => WireRequest
  /** Writes the record, once. `operation` is a route or an RPC. */
  readonly end: (operation: string, status: string) => void
}

export interface CallRecords {
  /** Begins the record of a call; undefined if none is kept. `port` is given for calls of at most one request. */
  readonly begin: (port: Port | undefined) => CallRecord | undefined
}

export interface CallRecordOptions {
  readonly logging: LogControl
  readonly tracing: Tracing
}

/** Logs with the loggers of the calling fiber. */
export const make = ({ logging, tracing }: CallRecordOptions): Effect.Effect<CallRecords> =>
  Effect.map(Effect.context<never>(), (context) => {
    const runFork = Effect.runForkWith(context)
    return {
      begin: (port) => {
        if (!logging.isOn("Debug") && !tracing.isOn()) return undefined
        const startedAt = tracing.now()
        let about: Pick<CallLineFields, "model" | "request_id"> = {}
        let trace: RequestTrace | undefined
        let ended = false
        return {
          addRequest: (wire) => {
            const { modelName, id } = wire
            about = { model: short(modelName), ...(id === "" ? {} : { request_id: short(id) }) }
            trace = tracing.sample(wire)
            if (trace === undefined) return wire
            if (port !== undefined) trace.received(port, startedAt, tracing.now())
            return { ...wire, trace }
          },
          end: (operation, status) => {
            if (ended) return
            ended = true
            const endedAt = tracing.now()
            if (port !== undefined) trace?.sent(endedAt)
            if (!logging.isOn("Debug")) return
            const duration = Number(((endedAt - startedAt) / 1e6).toFixed(3))
            const line = new CallLine({ operation: short(operation), status, duration_ms: duration, ...about })
            runFork(Effect.logDebug(line))
          },
        }
      },
    }
  })

/** Truncates text from clients, which has no length limit. */
const short = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 200)}…`)
