/** Whether a supervisor runs this process, and the channel between the two. */
import type { Socket } from "node:net"
import { isMainThread } from "node:worker_threads"
import type { FromVersion, ToVersion } from "./Message.ts"

/** Names the supervisor's process, because the processes that a version starts inherit the variable. */
const variable = "WATCHED_BY_NEREID"

/** The environment of a version. */
export const environment = (): NodeJS.ProcessEnv => ({ ...process.env, [variable]: String(process.pid) })

/** Tells whether this process is a version, in any of its threads. */
export const isSupervised = (): boolean =>
  process.env[variable] === String(process.ppid) && (!isMainThread || process.connected)

export const send = (message: FromVersion): void => {
  // The supervisor may have ended, which `onEnded` handles.
  process.send?.(message, undefined, undefined, () => {})
}

/** Calls back for each message, until the returned function is called. */
export const onMessage = (receive: (message: ToVersion, socket: Socket | undefined) => void): (() => void) => {
  const listener = (message: unknown, socket: unknown) => receive(message as ToVersion, socket as Socket | undefined)
  process.on("message", listener)
  return () => void process.off("message", listener)
}

export const onEnded = (ended: () => void): (() => void) => {
  process.on("disconnect", ended)
  return () => void process.off("disconnect", ended)
}
