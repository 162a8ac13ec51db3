/** Lines of death and hangs. */
import { wired } from "./PythonLine.ts"

export const death = wired({
  "P5.death.request": "its requests get INTERNAL `Stub process '<instance>' is not healthy.`",
  "P5.death.restart": "the process is started again (Triton: never)",
  "P5.death.ready": "the model is not ready meanwhile",
  "P5.death.others": "other models go on",
  "P5.hang.limit": "an execution has no limit by default; with one, the process is ended",
  "P5.timeout.queued": "a timeout acts while the request waits: `Request timeout expired`",
  "P5.timeout.executing": "not during its execution",
})
