/** Requests whose callers leave. */
import { expect } from "vitest"
import type { CaseServer, PythonCase } from "../PythonCase.ts"
import { text } from "../PythonRepository.ts"
import { events } from "./StreamCode.ts"

const waiting = `pb.Logger.log_info("it waits")
while not CANCELLED:
    time.sleep(0.001)
pb.Logger.log_info("it was cancelled")
error = pb.InferenceResponse(error=pb.TritonError("cancelled", pb.TritonError.CANCELLED))
`

/** Calls, leaves once the code waits, and waits until the code has noticed. */
const leaving = async ({ newLog }: CaseServer, call: (signal: AbortSignal) => Promise<unknown>) => {
  const controller = new AbortController()
  const before = newLog().length
  const ended = call(controller.signal).then(
    () => "ended",
    () => "failed",
  )
  const log = () => newLog().slice(before)
  await expect.poll(log).toContain("it waits")
  controller.abort()
  await ended
  await expect.poll(log).toContain("it was cancelled")
}

export const cancellationCases: ReadonlyArray<PythonCase> = [
  {
    name: "requests whose callers leave are cancelled",
    proves: ["P2.cancel.request", "P2.cancel.sender"],
    run: async (server) => {
      const { client } = server
      const unary = `${waiting.replace("CANCELLED", "request.is_cancelled()")}return error`
      await leaving(server, (signal) => client.infer("sync", [text("IN", unary)], { signal }))
      const streaming = `${waiting.replace("CANCELLED", "sender.is_cancelled()")}sender.send(error, FINAL)`
      await leaving(server, (signal) => client.events("decoupled", text("IN", streaming), signal))
      expect(await events(server, "sender.send(response(1), FINAL)")).toEqual(["1"])
    },
  },
]
