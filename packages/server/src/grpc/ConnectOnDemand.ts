/**
 * The requests of the gRPC port that Connect handles. Connect is imported with the first of them: it would add 20 MB
 * to a server whose callers only send plain inference or use the HTTP port.
 */
import { constVoid } from "effect/Function"
import { cutOff, isClosed } from "../port/HttpExchange.ts"
import type { ConnectHandler, ConnectOptions } from "./GrpcConnect.ts"

export const make = (options: ConnectOptions): ConnectHandler => {
  let handler: ConnectHandler | undefined
  let importing: Promise<ConnectHandler> | undefined
  const imported = async () => {
    const { make } = await import("./GrpcConnect.ts")
    return (handler = make(options))
  }
  return (request, response) => {
    if (handler !== undefined) return handler(request, response)
    // A caller that breaks off meanwhile is an error on both, and one without a listener ends the process.
    request.on("error", constVoid)
    response.on("error", constVoid)
    importing ??= imported()
    importing.then(
      (handle) => {
        if (!isClosed(response)) handle(request, response)
      },
      (defect) => {
        importing = undefined
        options.logDefect(defect)
        cutOff(response)
      },
    )
  }
}
