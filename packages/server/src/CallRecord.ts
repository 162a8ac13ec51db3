/**
 * What is kept of a call while somebody wants to know: a line in the log, where that is verbose. Where nobody does, a call
 * costs one check.
 */
import { Effect } from "effect"
import type { WireRequest } from "@nereid/core/WireRequest"
import type { Gateway } from "./Gateway.ts"

/** A call under way. */
export interface CallRecord {
  /** The request that the call turned out to make; as it is to go on. */
  readonly asks: (wire: WireRequest) => WireRequest
  /** Writes what is to be written, once. */
  readonly end: (status: string) => void
}

export interface CallRecords {
  /** `what` is a route or an RPC. Undefined where nothing is kept. */
  readonly begin: (what: string) => CallRecord | undefined
}

/** Logs with the loggers of the calling fiber. */
export const make = ({ logging }: Gateway): Effect.Effect<CallRecords> =>
  Effect.map(Effect.context<never>(), (context) => {
    const runFork = Effect.runForkWith(context)
    return {
      begin: (what) => {
        if (!logging.isOn("Debug")) return undefined
        const startedAt = performance.now()
        let asked = ""
        let ended = false
        return {
          asks: (wire) => {
            const { modelName, id } = wire
            asked = `, model '${short(modelName)}'${id === "" ? "" : `, id '${short(id)}'`}`
            return wire
          },
          end: (status) => {
            if (ended) return
            ended = true
            const took = (performance.now() - startedAt).toFixed(3)
            runFork(Effect.logDebug(`${short(what)}: ${status}, ${took} ms${asked}`))
          },
        }
      },
    }
  })

/** What callers send may be of any length. */
const short = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 200)}…`)
