/** Lines of the batches of sequences: direct, oldest, statistics, ensembles, streams, and variables for tests. */
import { lines } from "./SequenceLine.ts"

export const batches = lines({
  all: {
    "L1.6.span": "a batch spans the slots up to the highest with a request; gaps are empty rows, and none follows",
    "L1.6.full": "all slots with a request share a batch",
    "L1.6.mismatch": "a slot whose request has another shape is an empty row, and keeps its request",
    "L1.6.ragged": "a ragged input may have another shape",
    "L1.6.empty-row": "an empty row has zeros in the shapes of the lowest request, and no response",
    "L1.6.delay": "requests wait for others up to the slot utilization, at most for the delay",
    "L1.6.delay-none": "without a delay or a utilization they do not wait",
    "L1.7.one": "oldest: a batch has at most one request of a sequence, and no empty rows",
    "L1.7.preferred": "oldest: preferred sizes and the delay are those of dynamic batches",
    "L1.7.mismatch": "oldest: requests of other shapes have another batch, unless they are ragged",
    "L1.7.no-batching": "oldest: a model may have no batches",
    "L1.9.pass": "an ensemble passes id and flags to each step",
    "L1.9.override": "a step's response may set them for later steps and for the response",
    "L1.9.wrong-type": "a response whose parameters have other types fails the request",
    "L1.9.cancel": "a caller of an ensemble that leaves cancels the requests of its steps",
    "L1.10.delay": "TRITONSERVER_DELAY_SCHEDULER holds the first batch until so many requests are in slots",
    "L1.10.backlog": "TRITONSERVER_BACKLOG_DELAY_SCHEDULER until so many are in the backlog",
  },
  both: {
    "L1.8.counts": "a request counts as one inference, a batch as one execution, an empty row as nothing",
    "L1.8.sizes": "the sizes of batches include empty rows",
    "L1.8.ensemble": "an ensemble has executions of one request",
  },
  stream: {
    "L1.7.order": "preserve_ordering: responses have the order of their requests",
    "L1.9.mix": "one stream may have several sequences",
    "L1.9.order": "whose responses have the order of all its requests",
  },
  HTTP: {
    "L1.8.failures": "failures count by reason, from 0 at the load",
    "L1.8.queue": "queue time includes the slot and the backlog",
    "L1.8.pending": "the metric of pending requests includes slots and backlog",
  },
})
