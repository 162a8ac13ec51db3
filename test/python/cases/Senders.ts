/** Responses that senders refuse. */
import { expect } from "vitest"
import type { PythonCase } from "../PythonCase.ts"
import { events } from "./StreamCode.ts"

/** Runs code, and sends the text of its exception. */
const refused = (code: string) => `try:
    ${code}
except Exception as error:
    sender.send(response(type(error).__name__ + ": " + str(error)), FINAL)`

export const senderCases: ReadonlyArray<PythonCase> = [
  {
    name: "a sender refuses what it cannot send",
    proves: ["P3.sender.unsupported", "P3.sender.nothing", "P3.sender.final-first", "P3.sender.own"],
    run: async (server) => {
      const [unsupported] = await events(server, refused("sender.send(response(1), 7)"))
      expect(unsupported).toBe("TritonModelException: Unable to send response. Unsupported flag provided.")
      const [nothing] = await events(server, refused("sender.send()"))
      expect(nothing).toContain("Inference Response object must be provided when the response flags is set to zero.")
      expect(await server.run(refused("sender.send(flags=FINAL)"), "sender")).toContain(
        "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
      )
      const own = `pb.InferenceRequest(model_name="m", inputs=[], requested_output_names=[]).get_response_sender().send(response(1))`
      expect((await events(server, refused(own)))[0]).toContain(
        "Response sender has no reference to the decoupled state of the model.",
      )
    },
  },
  {
    name: "a sender that has sent its last response refuses more",
    proves: ["P3.sender.closed", "P3.sender.second"],
    run: async (server) => {
      const twice = (first: string) => `sender.send(response(1)${first})
try:
  sender.send(response(2))
except Exception as error:
  pb.Logger.log_info("refused: " + str(error))`
      expect(await events(server, twice(", FINAL"))).toEqual(["1"])
      await expect.poll(server.newLog).toContain("refused: Unable to send response. Response sender has been closed.")
      expect(await server.run(`${twice("")}\nsender.send(flags=FINAL)`, "sender")).toBe("1")
      await expect
        .poll(server.newLog)
        .toContain("refused: Unable to send response. Non-decoupled model cannot send more than one response.")
    },
  },
]
