/** Whether requests may load and unload models: the model control mode of the server, as far as the page knows it. */
import { liveModel, server, stream } from "../live/stream.ts"

/** True where the server gives no live data: it then refuses what it does not allow. */
export const canControl = (): boolean =>
  server.value === undefined ? stream.problem.value !== undefined : server.value.control === "explicit"

/** Whether requests may load and unload this model: a model in code stays as long as its server. */
export const canControlModel = (name: string, version: string): boolean =>
  canControl() && liveModel(name, version)?.running?.origin !== "code"
