/** A row of the table of HTTP routes (HttpRoutes.ts). */
import type { HttpCall } from "./HttpCall.ts"
import type { Api } from "../gateway/RestrictedApis.ts"

export interface Route {
  readonly method: "GET" | "POST"
  /** API of the route, for restrictions; undefined for a file that anybody may have. */
  readonly api: Api | undefined
  readonly path: RegExp
  readonly handle: (call: HttpCall) => void
}
