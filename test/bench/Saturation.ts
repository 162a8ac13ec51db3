/**
 * Shows that inference does not block the server: `digits` called by a saturating number of clients. The server
 * measures the delay of its event loop and the rows per execution.
 */
import * as RequestLoad from "./RequestLoad.ts"
import type { Child } from "./Child.ts"
import * as Side from "./Side.ts"

export interface Saturation {
  readonly perSecond: number
  /** Milliseconds, of the server's event loop. */
  readonly delay: number
  readonly executions: number
  readonly inferences: number
  readonly errors: ReadonlyArray<string>
}

const clients = 64

/** Every client has a separate connection. */
export const saturate = async (
  server: Child,
  model: string,
  requestLoad: RequestLoad.RequestLoad,
  seconds: number,
): Promise<Saturation> => {
  const target = RequestLoad.target(server, requestLoad, await RequestLoad.replyLength(server, requestLoad))
  const load = Side.server(server, target, clients, clients)
  const warm = await load.run(seconds / 5)
  const before = (await server.call("watch")).models[model]
  const measured = await load.run(seconds)
  const { delay, models } = await server.call("report")
  const after = models[model]
  if (before === undefined || after === undefined) throw new Error(`the server has no model ${model}`)
  return {
    perSecond: measured.perSecond,
    delay,
    executions: after.executions - before.executions,
    inferences: after.inferences - before.inferences,
    errors: [...warm.errors, ...measured.errors],
  }
}
