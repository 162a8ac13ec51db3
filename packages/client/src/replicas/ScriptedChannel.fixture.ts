/** A channel whose calls a test ends, in place of a server. */
import { constVoid } from "effect/Function"
import type { ChannelReceiver, ChannelReply, Readiness, ServerChannel } from "../channel/Channel.ts"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"

/** A call that has arrived. */
export interface ScriptedCall {
  readonly wire: WireRequest
  readonly timeoutMs: number | undefined
  readonly reply: ChannelReply
  readonly receiver: ChannelReceiver
  isCancelled: boolean
  isPaused: boolean
}

const ignored: ChannelReceiver = { response: constVoid, end: constVoid }

export class ScriptedChannel implements ServerChannel {
  readonly calls: Array<ScriptedCall> = []
  readonly checks: Array<(readiness: Readiness) => void> = []
  isClosed = false

  readonly infer: ServerChannel["infer"] = (wire, timeoutMs, reply) => {
    const call = { wire, timeoutMs, reply, receiver: ignored, isCancelled: false, isPaused: false }
    this.calls.push(call)
    return () => void (call.isCancelled = true)
  }

  readonly stream: ServerChannel["stream"] = (wire, timeoutMs, receiver) => {
    const call = { wire, timeoutMs, reply: constVoid, receiver, isCancelled: false, isPaused: false }
    this.calls.push(call)
    return { cancel: () => void (call.isCancelled = true), flow: (isPaused) => void (call.isPaused = isPaused) }
  }

  readonly ready: ServerChannel["ready"] = (_, reply) => {
    this.checks.push(reply)
    return constVoid
  }

  readonly close = () => {
    this.isClosed = true
    return Promise.resolve()
  }
}

export const silentChannel: ServerChannel = new ScriptedChannel()
