/** Scenarios of sequences as data, which run against this server and against a real Triton. */

export type Id = bigint | string

export type Flags = "" | "S" | "E" | "SE"

export interface Step {
  readonly id: Id
  readonly flags: Flags
  readonly input: number
  /** The element of OUTPUT, or the message of the error. */
  readonly expected: number | string
  readonly rows?: number
  /** Elements of each row, all of them `input`. Default 1; more for models of `wide` and `ragged`. */
  readonly width?: number
  /** The parameter `timeout`, in microseconds. */
  readonly timeout?: bigint
  /** The parameter `priority`. */
  readonly priority?: bigint
  /** The parameter `sequence_number`. */
  readonly number?: bigint
  /** The parameter `sequence_max_idle`. */
  readonly maxIdle?: bigint
  /** Whether the step waits until the only live sequence has expired. */
  readonly afterExpiry?: boolean
  /** Among steps that do not wait for one another: whether this one waits for all answers before it. */
  readonly afterAnswers?: boolean
}

/** Models of one INT32 in and out, by what OUTPUT is. */
export type Behaviour =
  /** INPUT + START, where READY. */
  | "flags"
  /** INPUT + START + END * id, where READY. */
  | "ids"
  /** The sum of the inputs so far, by implicit state. */
  | "state"
  /** INPUT + the initial state, of requests of START: Triton's Python backend keeps no implicit state. */
  | "initial"
  /** The number of executions of the request, which ends after INPUT of them. The model is iterative. */
  | "steps"
  /** As `flags`, with an INPUT of any width. */
  | "wide"
  /** As `wide`, whose requests of different widths share batches. */
  | "ragged"

export type IdType = "UINT64" | "INT64" | "UINT32" | "INT32" | "BYTES"

export interface Scenario {
  readonly name: string
  /** Labels of lines/SequenceLine.ts. */
  readonly proves?: ReadonlyArray<string>
  readonly behaviour: Behaviour
  /** Fields of `sequence_batching` in addition to controls and states. */
  readonly fields?: string
  /** Datatypes of the controls of `ids`. Default INT32 and UINT64. */
  readonly controls?: { readonly flag: "INT32" | "FP32" | "BOOL"; readonly id: IdType }
  /** The initial state of `initial`, which a file has. Default zero, without a file. */
  readonly initial?: number
  readonly maxBatchSize: number
  readonly instances?: number
  /** Microseconds. Default 5 seconds. */
  readonly idle?: number
  /** Requests in slots, and in the backlog, before the first batch is executed. */
  readonly hold?: readonly [requests: number, backlogged: number]
  /**
   * With `hold`, a step is sent as soon as the server has taken the one before it. Without it, each step waits for the
   * answer to the one before it.
   */
  readonly steps: ReadonlyArray<Step>
  /** Whether one transport is enough, because the scenario is about the model. Default false. */
  readonly oneTransport?: boolean
  /** Why Triton 2.51 answers otherwise; absent where it does not. */
  readonly unlikeTriton?: string
  /** Executions by their batch sizes. */
  readonly sizes: { readonly [size: number]: number }
}

/** `step(5n, "S", 1, 2)` */
export const step = (
  id: Id,
  flags: Flags,
  input: number,
  expected: number | string,
  more: Partial<Step> = {},
): Step => ({
  id,
  flags,
  input,
  expected,
  ...more,
})

/** A whole sequence of these inputs to a model of `flags`. */
export const whole = (id: Id, inputs: ReadonlyArray<number>): ReadonlyArray<Step> =>
  inputs.map((input, index) => {
    const [isStart, isEnd] = [index === 0, index === inputs.length - 1]
    return step(id, `${isStart ? "S" : ""}${isEnd ? "E" : ""}`, input, input + Number(isStart))
  })

/** The message of the error of a request to a sequence that is not live. */
export const notStarted = (id: string, model = "m") =>
  `inference request for sequence ${id} to model '${model}' must specify the START flag on the first request of the sequence`
