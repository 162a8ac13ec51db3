/** Streams of the dashboard: the live view, and the log. EventStream.ts sends them. */
import { livePath } from "@nereid/dashboard/internal/live/LiveMessage"
import { logPath } from "@nereid/dashboard/internal/live/LogMessage"
import type { DashboardStreams } from "../live/DashboardStreams.ts"
import type { Api } from "../gateway/RestrictedApis.ts"
import type { OutgoingResponse } from "../port/HttpExchange.ts"
import { sendEmpty } from "../port/HttpReply.ts"
import type { Route } from "./HttpRoute.ts"

/** Makes the routes below `folder`, which ends with a slash. */
export const make = ({ live, log }: DashboardStreams, folder: string): ReadonlyArray<Route> => [
  stream(`${folder}${livePath.slice(1)}`, "statistics", (response) => live.open(response)),
  stream(`${folder}${logPath.slice(1)}`, "logging", (response) => log.open(response)),
]

const stream = (path: string, api: Api, open: (response: OutgoingResponse) => void): Route => ({
  method: "GET",
  api,
  path: new RegExp(`^${path.replaceAll(/[.~-]/g, "\\$&")}$`),
  // A stream without a body would not end.
  handle: ({ request, response }) => (request.method === "HEAD" ? sendEmpty(response, 200) : open(response)),
})
