/** Lines of the life of a sequence, from its START to its END or another end. */
import { lines } from "./SequenceLine.ts"

export const life = lines({
  all: {
    "L1.5.spread": "a START has the lowest free slot of all instances, so sequences spread",
    "L1.5.backlog": "without a free slot it waits, and its requests with it",
    "L1.5.backlog-order": "sequences leave the backlog in their order, at once when a slot is free",
    "L1.5.end-forgets": "END frees the id when it arrives",
    "L1.5.end-then-start": "a START of an ended id is another sequence, which may wait beside the first",
    "L1.5.start-of-live": "START of a live id waits behind its requests, and its state begins anew",
    "L1.5.release-direct": "direct: END frees its slot once it is executed",
    "L1.5.release-oldest": "oldest: the next sequence follows once END has been executed",
    "L1.5.idle": "an idle sequence expires, and its requests need START again",
    "L1.5.idle-clock": "the idle time counts from the last response (Triton: from the last request)",
    "L1.5.idle-backlog": "a sequence does not expire while it waits, and promotion renews its time",
    "L1.5.timeout": "a sequence waits at most for the timeout of its requests, and all of them fail",
    "L1.5.timeout-first": "the first of their timeouts counts",
    "L1.5.timeout-slot": "in a slot, a timeout has no effect",
    "L1.5.priority": "a priority has no effect",
    "L1.5.cancel-backlog": "a cancelled request in the backlog cancels its sequence",
    "L1.5.cancel-direct": "direct: a cancelled request leaves its slot with those behind it",
    "L1.5.cancel-oldest": "oldest: a request that may be executed leaves alone",
    "L1.5.cancel-executing": "an execution goes on when its caller leaves, and its sequence as well",
    "L1.5.cancel-count": "each request that leaves counts as CANCELED",
    "L1.5.instances-keep": "a change of instances keeps sequences, also on instances that are removed",
    "L1.5.instances-removed": "a removed instance keeps its busy slots to the ends of their sequences",
    "L1.5.instances-backlog": "and gives none to the backlog",
    "L1.5.reload": "any other reload ends sequences",
    "L1.5.unload": "after an unload, their model has no available versions",
    "L1.5.stop-start": "a stop refuses START",
    "L1.5.stop-continue": "and lets open sequences go on to their END",
    "L1.5.stop-log": "and logs how many it finds for each model",
    "L1.5.stop-idle": "or to their expiry",
    "L1.5.stop-timeout": "or to the time limit of the stop",
  },
  HTTP: {
    "L1.5.conflict-log": "START of a live id is a warning in the log",
  },
  stream: {
    "L1.5.decoupled-direct": "direct: a decoupled model takes the next batch after the execution",
    "L1.5.decoupled-oldest": "oldest: the next request of a sequence follows once the one before it is released",
  },
})
