/**
 * The scenarios of Triton's tests L0_sequence_batcher and L0_dyna_sequence_batcher, by their names there, and further
 * ones: https://github.com/triton-inference-server/server/tree/main/qa
 */
import { backlogs } from "./BacklogScenarios.ts"
import { datatypes } from "./DatatypeScenarios.ts"
import { notStarted, type Scenario, step, whole } from "./Scenario.ts"
import { widths } from "./WidthScenarios.ts"

const nine = [1, 2, 3, 4, 5, 6, 7, 8, 9]

/** One step after the other, over each transport. */
const sequential: ReadonlyArray<Scenario> = [4, 0].flatMap((maxBatchSize): ReadonlyArray<Scenario> => [
  {
    name: `simple_sequence, max_batch_size ${maxBatchSize}`,
    proves: ["L1.1.direct-default", "L1.1.control-shape", "L1.1.flags.first-middle-last"],
    behaviour: "flags",
    maxBatchSize,
    steps: whole(5n, nine),
    sizes: { 1: 9 },
  },
  {
    name: `length1_sequence, max_batch_size ${maxBatchSize}`,
    proves: ["L1.1.flags.only"],
    behaviour: "flags",
    maxBatchSize,
    steps: [step(99n, "SE", 42, 43)],
    sizes: { 1: 1 },
  },
  {
    name: `no_correlation_id, max_batch_size ${maxBatchSize}`,
    proves: ["L1.3.no-id", "L1.4.no-id"],
    behaviour: "flags",
    maxBatchSize,
    steps: [
      step(0n, "SE", 1, "inference request to model 'm' must specify a non-zero or non-empty correlation ID"),
      step("", "SE", 1, "inference request to model 'm' must specify a non-zero or non-empty correlation ID"),
    ],
    sizes: {},
  },
  {
    name: `no_sequence_start, max_batch_size ${maxBatchSize}`,
    proves: ["L1.4.not-started"],
    behaviour: "flags",
    maxBatchSize,
    steps: [step(37469245n, "", 1, notStarted("37469245")), step("text", "E", 1, notStarted("text"))],
    sizes: {},
  },
  {
    name: `no_sequence_start2, max_batch_size ${maxBatchSize}`,
    proves: ["L1.5.end-forgets"],
    behaviour: "flags",
    maxBatchSize,
    steps: [...whole(27n, [1, 2, 3]), step(27n, "", 4, notStarted("27"))],
    sizes: { 1: 3 },
  },
  {
    name: `no_sequence_end, max_batch_size ${maxBatchSize}`,
    proves: ["L1.5.start-of-live"],
    behaviour: "flags",
    maxBatchSize,
    steps: [step(7n, "S", 1, 2), step(7n, "", 2, 2), step(7n, "S", 42, 43), step(7n, "E", 9, 9)],
    sizes: { 1: 4 },
  },
  {
    name: `ids are numbers or strings, max_batch_size ${maxBatchSize}`,
    proves: ["L1.3.id-kinds", "L1.3.id-types", "L1.1.controls-optional"],
    behaviour: "state",
    maxBatchSize,
    instances: 2,
    steps: [
      step("5", "S", 1, 1),
      step(5n, "S", 10, 10),
      step("5", "", 2, 3),
      step(5n, "E", 20, 30),
      step("5", "E", 3, 6),
      step(18446744073709551615n, "S", 1, 1),
      step(18446744073709551615n, "E", 1, 2),
    ],
    sizes: { 1: 7 },
  },
  {
    name: `state begins anew at START, max_batch_size ${maxBatchSize}`,
    proves: ["L2.next", "L2.zero", "L2.start"],
    behaviour: "state",
    maxBatchSize,
    steps: [step(1n, "S", 1, 1), step(1n, "", 2, 3), step(1n, "S", 5, 5), step(1n, "E", 6, 11), step(1n, "SE", 9, 9)],
    sizes: { 1: 5 },
  },
  {
    name: `dyna simple_sequence, max_batch_size ${maxBatchSize}`,
    proves: ["L1.7.no-batching"],
    behaviour: "ids",
    fields: "oldest { max_candidate_sequences: 6 }",
    maxBatchSize,
    steps: [step(5n, "S", 1, 2), step(5n, "", 2, 2), step(5n, "E", 3, 8), step(99n, "SE", 42, 142)],
    sizes: { 1: 4 },
  },
])

const errors: ReadonlyArray<Scenario> = [
  {
    name: "batch_size",
    proves: ["L1.4.batch"],
    behaviour: "flags",
    maxBatchSize: 4,
    steps: [
      step(
        27n,
        "SE",
        1,
        "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
        { rows: 2 },
      ),
    ],
    sizes: {},
  },
  {
    name: "corrid_data_type",
    proves: ["L1.4.id-type"],
    unlikeTriton: "Triton checks the type of the id since a later version",
    behaviour: "ids",
    maxBatchSize: 4,
    steps: [
      step(
        "corrid",
        "SE",
        1,
        "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'BYTES', but model 'm' expects 'UINT64'",
      ),
    ],
    sizes: {},
  },
]

/** Instances, slots of each, and the name of the test's variant. */
const layouts = [
  [1, 4],
  [2, 2],
  [4, 1],
] as const

const [a, b, c, d, e] = [1001n, 1002n, 1003n, 1004n, 1005n]

const candidates = [a, b, c, d, e, 1006n]

/** All steps wait before the first batch. */
const held: ReadonlyArray<Scenario> = layouts.flatMap(([instances, maxBatchSize]): ReadonlyArray<Scenario> => {
  const base = { behaviour: "flags", maxBatchSize, instances } as const
  const of = `${instances}×${maxBatchSize}`
  const sizes = <T>(one: T, two: T, four: T): T => (instances === 1 ? one : instances === 2 ? two : four)
  return [
    {
      ...base,
      name: `half_batch ${of}`,
      proves: ["L1.10.delay", "L1.5.spread"],
      hold: [8, 0],
      steps: [...whole(a, [1, 2, 3, 4]), ...whole(b, [0, 9, 5, 13])],
      sizes: sizes({ 2: 4 }, { 1: 8 }, { 1: 8 }),
    },
    {
      ...base,
      name: `skip_batch ${of}`,
      proves: ["L1.6.span"],
      hold: [12, 0],
      steps: [
        ...whole(b, [11, 12, 12, 13]),
        ...whole(d, [1111, 1112, 1112, 1113]),
        ...whole(a, [1, 3]),
        ...whole(c, [111, 113]),
      ],
      sizes: sizes({ 4: 2, 2: 2 }, { 2: 4, 1: 4 }, { 1: 12 }),
    },
    {
      ...base,
      name: `full_batch ${of}`,
      proves: ["L1.6.full", "L1.1.direct-slots"],
      hold: [12, 0],
      steps: [a, b, c, d].flatMap((id) => whole(id, [1, 2, 3])),
      sizes: sizes({ 4: 3 }, { 2: 6 }, { 1: 12 }),
    },
    {
      ...base,
      name: `backlog ${of}`,
      proves: ["L1.5.backlog", "L1.5.release-direct"],
      hold: [12, 0],
      steps: [a, b, c, d, e].flatMap((id) => whole(id, [1, 2, 3])),
      sizes: sizes({ 4: 3, 1: 3 }, { 2: 6, 1: 3 }, { 1: 15 }),
    },
    {
      ...base,
      name: `backlog_same_correlation_id ${of}`,
      proves: ["L1.5.end-then-start"],
      hold: [12, 2],
      steps: [...[a, b, c, d].flatMap((id) => whole(id, [1, 2, 3])), ...whole(b, [11, 13])],
      sizes: sizes({ 4: 3, 1: 2 }, { 2: 6, 1: 2 }, { 1: 14 }),
    },
  ]
})

const one = { behaviour: "flags", maxBatchSize: 4 } as const

/** Of one instance with four slots. */
const heldByOne: ReadonlyArray<Scenario> = [
  {
    ...one,
    behaviour: "state",
    name: "states of a batch are those of its sequences",
    proves: ["L2.batch"],
    hold: [8, 0],
    steps: [
      ...[a, b, c, d].map((id, index) => step(id, "S", index, index)),
      ...[a, b, c, d].map((id, index) => step(id, "E", 100, 100 + index)),
    ],
    sizes: { 4: 2 },
  },
  {
    ...one,
    name: "more candidates than rows",
    proves: ["L1.1.oldest-slots"],
    fields: "oldest { max_candidate_sequences: 6 }",
    // None is answered before it has a slot.
    steps: [...candidates.map((id) => step(id, "S", 1, 2)), ...candidates.map((id) => step(id, "E", 2, 2))],
    sizes: { 1: 12 },
  },
  {
    ...one,
    behaviour: "ids",
    fields: "oldest { max_candidate_sequences: 4 preferred_batch_size: 4 max_queue_delay_microseconds: 2000000 }",
    name: "dyna multi_parallel_sequence",
    proves: ["L1.7.preferred", "L1.7.one"],
    hold: [4, 0],
    steps: [
      ...[a, b, c, d].map((id) => step(id, "S", 1, 2)),
      step(a, "E", 3, 1004),
      ...[b, c, d].map((id) => step(id, "", 2, 2)),
      ...[b, c, d].map((id) => step(id, "E", 3, 3 + Number(id))),
    ],
    sizes: { 4: 2, 3: 1 },
  },
]

/** Strategies, with slots for all sequences of a scenario. */
const strategies = {
  direct: "direct {}",
  oldest: "oldest { max_candidate_sequences: 4 }",
} as const

/** Requests of four sequences in turn, on one stream. */
const inTurn = [1, 2, 3, 4].flatMap((round) =>
  [a, b, c, d].map((id, index) => {
    const flags = round === 1 ? "S" : round === 4 ? "E" : ""
    // The sum of index + 1, index + 2, …
    return step(id, flags, index + round, round * index + (round * (round + 1)) / 2)
  }),
)

const ordered: ReadonlyArray<Scenario> = layouts.map(([instances, maxBatchSize]) => ({
  name: `sequences in turn ${instances}×${maxBatchSize}`,
  proves: ["L2.isolated"],
  behaviour: "state",
  maxBatchSize,
  instances,
  hold: [16, 0],
  steps: inTurn,
  sizes: { [maxBatchSize]: 16 / maxBatchSize },
}))

/** The same with both strategies. */
const ofStrategies: ReadonlyArray<Scenario> = Object.entries(strategies).flatMap(
  ([name, fields]): ReadonlyArray<Scenario> => [
    {
      name: `expiry, ${name}`,
      proves: ["L1.5.idle"],
      behaviour: "state",
      fields,
      maxBatchSize: 4,
      idle: 500_000,
      steps: [
        step(7n, "S", 1, 1),
        step(7n, "", 2, notStarted("7"), { afterExpiry: true }),
        step(7n, "E", 2, notStarted("7")),
        step(7n, "S", 5, 5),
        step(7n, "E", 6, 11),
      ],
      sizes: { 1: 3 },
    },
    {
      name: `requests that no START precedes, ${name}`,
      oneTransport: true,
      behaviour: "state",
      fields,
      maxBatchSize: 4,
      steps: [
        step(1n, "E", 1, notStarted("1")),
        step(1n, "S", 1, 1),
        step(2n, "", 1, notStarted("2")),
        step("1", "E", 1, notStarted("1")),
        step(1n, "E", 2, 3),
        step(1n, "E", 2, notStarted("1")),
        step(1n, "", 2, notStarted("1")),
        step(1n, "SE", 9, 9),
      ],
      sizes: { 1: 3 },
    },
    {
      name: `START of a live sequence, ${name}`,
      proves: ["L2.start"],
      oneTransport: true,
      behaviour: "state",
      fields,
      maxBatchSize: 4,
      steps: [step(1n, "S", 1, 1), step(1n, "SE", 5, 5), step(1n, "", 1, notStarted("1")), step(1n, "SE", 2, 2)],
      sizes: { 1: 3 },
    },
    {
      name: `ids of many kinds, ${name}`,
      behaviour: "state",
      fields,
      maxBatchSize: 4,
      steps: [
        step("0", "S", 1, 1),
        step(" ", "S", 2, 2),
        step("é€😀", "S", 3, 3),
        step("0", "E", 10, 11),
        step(" ", "E", 10, 12),
        step("é€😀", "E", 10, 13),
        step("x".repeat(128), "SE", 4, 4),
        step(2n ** 63n, "S", 5, 5),
        step(2n ** 63n, "E", 10, 15),
      ],
      // The other slots are empty rows.
      sizes: name === "direct" ? { 1: 5, 2: 2, 3: 2 } : { 1: 9 },
    },
    {
      name: `executions of an iterative model, ${name}`,
      proves: ["L3.no-id", "L3.steps", "L3.single"],
      behaviour: "steps",
      fields,
      maxBatchSize: 4,
      // 0 is no id: the request is a sequence by itself.
      steps: [step(0n, "", 3, 3), step(0n, "", 1, 1), step("", "", 2, 2), step(7n, "S", 2, 2)],
      sizes: { 1: 8 },
    },
    {
      name: `an iterative model and an id that is not live, ${name}`,
      proves: ["L3.id"],
      behaviour: "steps",
      fields,
      maxBatchSize: 4,
      // A request after the last one is refused here, and in Triton once it has noticed the end.
      steps: [step(7n, "", 2, notStarted("7")), step(7n, "S", 2, 2)],
      sizes: { 1: 2 },
    },
  ],
)

const initials: ReadonlyArray<Scenario> = [4, 0].flatMap((maxBatchSize): ReadonlyArray<Scenario> => {
  const common = { behaviour: "initial", maxBatchSize } as const
  const starts = (initial: number) => [
    step(1n, "SE", 1, initial + 1),
    step(2n, "SE", 2, initial + 2),
    step(1n, "S", 3, initial + 3),
  ]
  return [
    {
      ...common,
      name: `an initial state of zeros, max_batch_size ${maxBatchSize}`,
      proves: ["L2.zero"],
      steps: starts(0),
      sizes: { 1: 3 },
    },
    {
      ...common,
      name: `an initial state from a file, max_batch_size ${maxBatchSize}`,
      proves: ["L2.file"],
      initial: 100,
      steps: starts(100),
      sizes: { 1: 3 },
    },
  ]
})

export const scenarios: ReadonlyArray<Scenario> = [
  ...sequential,
  ...errors,
  ...held,
  ...heldByOne,
  ...ordered,
  ...ofStrategies,
  ...datatypes,
  ...initials,
  ...backlogs,
  ...widths,
]
