/** The part of a document about the streams that the page of a server reads, for a server that has a page. */
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import { livePath } from "@nereid/dashboard/internal/live/LiveMessage"
import { logPath } from "@nereid/dashboard/internal/live/LogMessage"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as EventStream from "./EventStream.ts"
import { success } from "./Operation.ts"
import { place, type PlacedOperation } from "./ProtocolPaths.ts"
import * as StreamSchemas from "./StreamSchemas.ts"

export interface StreamPaths {
  readonly operations: ReadonlyArray<PlacedOperation>
  readonly schemas: { readonly [name: string]: SchemaObject }
}

/** `folder`: the path of the page, with a slash at its end; undefined for a server without streams. */
export const make = (folder: string | undefined): StreamPaths => {
  if (folder === undefined) return { operations: [], schemas: {} }
  const { live, log, schemas } = StreamSchemas.make()
  const errors = ErrorResponses.of(403, 500, 503)
  const operations = [
    place(`${folder}${livePath.slice(1)}`, "get", "liveStream", {
      summary: "Stream of the load of all models and of the process",
      description: "Begins with the last ten minutes, and goes on with a message per second until the client closes it",
      api: "statistics",
      responses: { ...success("Messages", EventStream.content(live)), ...errors },
    }),
    place(`${folder}${logPath.slice(1)}`, "get", "logStream", {
      summary: "Stream of the lines of the log",
      description: "Begins with the last lines, and goes on until the client closes it",
      api: "logging",
      responses: { ...success("Messages", EventStream.content(log)), ...errors },
    }),
  ]
  return { operations, schemas }
}
