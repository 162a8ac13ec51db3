/** Scenarios of sequences that wait for a slot, by the names of Triton's tests where there is one. */
import { notStarted, type Scenario, step, whole } from "./Scenario.ts"

const [a, b, c, d, e, f] = [1001n, 1002n, 1003n, 1004n, 1005n, 1006n]

const one = { behaviour: "flags", maxBatchSize: 4 } as const

/** One slot. */
const narrow = { behaviour: "state", maxBatchSize: 1 } as const

const timeout = 1_000_000n

const timedOut = "timeout of the corresponding sequence has been expired"

/** Four sequences for four slots, and one for the backlog. */
const filled = [
  ...whole(a, [1, 2, 3]),
  ...whole(b, [11, 13]),
  ...whole(c, [111, 113]),
  ...whole(d, [1111, 1112, 1113]),
  ...whole(e, [11111]),
]

const direct: ReadonlyArray<Scenario> = [
  {
    ...one,
    name: "backlog_fill",
    proves: ["L1.5.backlog-order", "L1.10.backlog"],
    hold: [10, 2],
    steps: [...filled, ...whole(f, [22222])],
    sizes: { 4: 3 },
  },
  {
    ...one,
    name: "backlog_same_correlation_id_no_end",
    proves: ["L1.5.start-of-live"],
    hold: [16, 0],
    steps: [
      step(a, "S", 1, 2),
      step(a, "", 3, 3),
      ...whole(b, [11, 12, 12, 13]),
      ...whole(c, [111, 112, 112, 113]),
      ...whole(d, [1111, 1112, 1112, 1113]),
      step(a, "S", 11, 12),
      step(a, "E", 13, 13),
    ],
    sizes: { 4: 4 },
  },
  {
    ...one,
    name: "backlog_fill_no_end",
    proves: ["L1.5.backlog-order", "L1.6.span"],
    hold: [10, 3],
    steps: [
      ...filled,
      step(f, "S", 22222, 22223),
      step(f, "", 22223, 22223),
      // It has the third slot: two empty rows precede it.
      step(f, "E", 22224, 22224, { afterAnswers: true }),
    ],
    sizes: { 4: 3, 3: 2 },
  },
  {
    ...one,
    name: "backlog_sequence_timeout",
    proves: ["L1.5.idle", "L1.5.backlog"],
    idle: 1_000_000,
    hold: [4, 0],
    steps: [
      ...[a, b, c, d].map((id) => step(id, "S", 1, 2)),
      // Until the first sequence has expired.
      step(e, "SE", 5, 6),
      step(a, "", 3, notStarted("1001"), { afterAnswers: true }),
    ],
    sizes: { 4: 1, 1: 1 },
  },
  {
    ...one,
    behaviour: "ids",
    name: "corrid skip_batch",
    proves: ["L1.5.spread"],
    maxBatchSize: 1,
    instances: 4,
    hold: [12, 0],
    steps: [
      step(b, "S", 1, 2),
      step(b, "", 2, 2),
      step(b, "", 3, 3),
      step(b, "E", 4, 4 + Number(b)),
      step(d, "S", 11, 12),
      step(d, "", 12, 12),
      step(d, "", 13, 13),
      step(d, "E", 14, 14 + Number(d)),
      step(a, "S", 111, 112),
      step(a, "E", 113, 113 + Number(a)),
      step(c, "S", 1111, 1112),
      step(c, "E", 1113, 1113 + Number(c)),
    ],
    sizes: { 1: 12 },
  },
]

const timeouts = ["direct {}", "oldest { max_candidate_sequences: 1 }"].map((fields): Scenario => ({
  ...narrow,
  name: `request_timeout, ${fields}`,
  proves: ["L1.5.timeout", "L1.5.timeout-first"],
  fields,
  idle: 60_000_000,
  hold: [1, 0],
  steps: [
    step(a, "S", 1, 1),
    step(b, "S", 1, timedOut, { timeout }),
    step(b, "", 2, timedOut, { timeout: 60n * timeout }),
    step(b, "E", 3, timedOut),
    // As send_request_after_timeout.
    step(b, "", 4, notStarted("1002"), { afterAnswers: true }),
    step(a, "E", 2, 3),
  ],
  sizes: { 1: 2 },
}))

/** Slots that are free only when an execution has ended, so that the next sequence cannot share its batch. */
const oldest: ReadonlyArray<Scenario> = [
  {
    ...narrow,
    name: "the backlog of oldest goes on once END has been executed",
    proves: ["L1.5.release-oldest", "L1.5.backlog-order", "L1.1.oldest-slots-default"],
    fields: "oldest {}",
    hold: [1, 0],
    steps: [a, b, c, d].map((id) => step(id, "SE", Number(id), Number(id))),
    sizes: { 1: 4 },
  },
  {
    ...one,
    behaviour: "ids",
    name: "dyna backlog_fill",
    oneTransport: true,
    fields: "oldest { max_candidate_sequences: 4 preferred_batch_size: 4 max_queue_delay_microseconds: 5000000 }",
    hold: [4, 0],
    steps: [
      step(a, "S", 1, 2),
      step(a, "", 2, 2),
      step(a, "E", 3, 3 + Number(a)),
      ...[b, c].flatMap((id) => [step(id, "S", 11, 12), step(id, "E", 13, 13 + Number(id))]),
      step(d, "S", 1, 2),
      step(d, "", 2, 2),
      step(d, "E", 3, 3 + Number(d)),
      ...[e, f].map((id) => step(id, "SE", 1, 2 + Number(id))),
    ],
    sizes: { 4: 3 },
  },
  {
    ...one,
    behaviour: "ids",
    name: "dyna backlog",
    oneTransport: true,
    fields: "oldest { max_candidate_sequences: 4 preferred_batch_size: 4 max_queue_delay_microseconds: 1000000 }",
    hold: [4, 0],
    steps: [a, b, c, d, e].flatMap((id) => [step(id, "S", 1, 2), step(id, "", 2, 2), step(id, "E", 3, 3 + Number(id))]),
    sizes: { 4: 3, 1: 3 },
  },
]

export const backlogs: ReadonlyArray<Scenario> = [...direct, ...timeouts, ...oldest]
