/** Lines of iterative sequences. */
import { lines } from "./SequenceLine.ts"

export const iterative = lines({
  all: {
    "L3.no-id": "a request without an id is a sequence by itself",
    "L3.steps": "it is executed again until it is not rescheduled, with START at its first step alone",
    "L3.single": "a model with one response answers after its last step",
    "L3.id": "with an id, a request needs START",
  },
  HTTP: {
    "L3.slots": "it keeps its slot, and others wait in the backlog",
  },
  stream: {
    "L3.not-configured": "a model without iterative_sequence cannot reschedule",
    "L3.slow": "a step that is executed for longer than the idle limit goes on (Triton: its sequence is over)",
    "L3.closed": "a rescheduled request whose sequence is over gets the error of a request without START",
  },
  both: {
    "L3.statistics": "each step is one execution and one inference",
  },
})
