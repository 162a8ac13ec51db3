/** Lines of implicit state. */
import { lines } from "./SequenceLine.ts"

export const states = lines({
  all: {
    "L2.zero": "a state begins as zeros",
    "L2.zero-strings": "or as empty strings",
    "L2.file": "or with the contents of its file",
    "L2.variable": "a variable extent begins as 1",
    "L2.next": "the output of a request is the input of the next one",
    "L2.shape": "its shape may change",
    "L2.start": "it begins anew at START alone",
    "L2.failure": "a failed request leaves it as it was",
    "L2.no-update": "so does an execution without it",
    "L2.batch": "each request of a batch has its own",
    "L2.split": "a state with fewer rows than the batch fails its requests",
    "L2.mismatch": "states of different shapes share no batch (Triton: the first one has its shape for all)",
    "L2.isolated": "no sequence sees the state of another, also on a slot that was used before",
    "L2.strings": "it may be of strings",
    "L2.several": "several states pair by their entries",
    "L2.returned": "it is returned if it is in `output` too",
  },
  HTTP: {
    "L2.not-output": "a state that is no output cannot be requested, and none is an input",
  },
  both: {
    "L2.initial-count": "an initial state is one at most",
    "L2.initial-type": "of the datatype of the state",
    "L2.initial-name": "with a name",
    "L2.initial-rank": "with as many dims",
    "L2.initial-variable": "none of them variable",
    "L2.initial-dim": "each of them equal",
    "L2.initial-short": "with enough bytes",
    "L2.initial-data": "with data",
    "L2.initial-file": "of a file that exists",
    "L2.twice": "a state input is one of one state",
    "L2.output-absent": "a state output that the file does not have fails the load (Triton: the request)",
    "L2.memory": "settings of its memory have no effect",
  },
})
