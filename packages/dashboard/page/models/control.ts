/** Whether requests may load and unload models: the model control mode of the server, as far as the page knows it. */
import { server } from "../live/stream.ts"

/** True without live data: the server then refuses what it does not allow. */
export const canControl = (): boolean => (server.value?.control ?? "explicit") === "explicit"
