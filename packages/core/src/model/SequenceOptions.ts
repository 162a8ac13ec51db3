/**
 * Sequences in the declaration of a model in code: the state that a handler gets and returns, and limits. `resolve`
 * checks them. Sequencing.ts has the resolved data, which configurations of repositories have too.
 */
import { Duration, Schema } from "effect"
import { type Field, type Fields, spec } from "./Field.ts"
import { requireInteger } from "./OptionChecks.ts"
import { defaultMaxQueueSize } from "./QueuePolicy.ts"
import { sequenceDefaults, type Sequencing, type StateTensor } from "./Sequencing.ts"
import { type Signature, wireDims } from "../tensor/TensorSpec.ts"

/** The state of a sequence: tensors by name, or one value of a Schema. */
export type StateSchema = Fields | Schema.Top

/** The sequences of a model, as a type. */
export interface SequenceType<S extends StateSchema | undefined = StateSchema | undefined> {
  readonly state: S
}

/** The state as handlers get and return it; undefined for a model that declares none. */
export type StateType<S> = S extends Schema.Top ? S["Type"] : S extends Fields ? Schema.Struct.Type<S> : undefined

export interface SequenceLimits {
  /**
   * Time after its last response at which a sequence without requests expires. `Infinity` for never: only its end, a
   * cancellation or the unload of the model releases its state then. Default 1 minute.
   */
  readonly maxIdle?: Duration.Input
  /**
   * The longest `maxIdle` that a caller may give its session; a longer one fails with InvalidRequest. `Infinity` for
   * any. Default `maxIdle`: callers may only shorten it.
   */
  readonly maxIdleLimit?: Duration.Input
  /** Sequences that the model has at the same time; further ones wait in the backlog. Default 10,000. */
  readonly maxSequences?: number
  /** Sequences that wait in the backlog; the first request of a further one fails with QueueFull. Default 100,000. */
  readonly maxBacklog?: number
  /**
   * Bytes of the state tensors of one sequence. A request that exceeds it fails with ExecutionFailed, and its sequence
   * is over. Only tensors count: the size of a value of a Schema is not measured. Default 256 MiB.
   */
  readonly maxStateBytes?: number
  /** The same for all sequences of the model together. Default 1 GiB. */
  readonly maxTotalStateBytes?: number
}

/**
 * Sequences of a model: requests that belong together, of which each gets the state that the one before has left.
 *
 * ```ts
 * sequence: { state: { SUM: Tensor.scalar("FP32") }, maxIdle: "30 seconds" }
 * sequence: { state: Schema.Array(Schema.String), initial: () => [] }
 * ```
 */
export interface SequenceOptions extends SequenceLimits {
  /**
   * Tensors by name, which differ from the names of inputs and outputs, or a Schema of any value. Default none: the
   * handler holds its state itself (`Model.perSequence`).
   */
  readonly state?: StateSchema | undefined
  /**
   * Makes the state of a new sequence. Required for a Schema. Default for tensors: zeros and empty strings, with an
   * extent of 1 for dims that vary.
   */
  readonly initial?: (() => unknown) | undefined
}

type Initial<S> = S extends Schema.Top
  ? { readonly initial: () => S["Type"] }
  : S extends Fields
    ? { readonly initial?: () => Schema.Struct.Type<S> }
    : { readonly initial?: undefined }

/** The options with an `initial` that fits `state`, and with no others. */
export type CheckedSequence<Q> = Q extends SequenceOptions ? Initial<StateSchemaOf<Q>> & NoOthers<Q> : unknown

/** Beside other options, the compiler takes a misspelt one. The text names it in the last line of its message. */
type NoOthers<Q> = {
  readonly [K in Exclude<keyof Q, keyof SequenceOptions>]: { readonly mistake: `sequence has no option ${K & string}` }
}

type StateSchemaOf<Q> = Q extends { readonly state: infer S extends StateSchema } ? S : undefined

/** The type that a declaration keeps of its options. */
export type SequenceTypeOf<Q extends SequenceOptions | undefined> = [Q] extends [SequenceOptions]
  ? SequenceType<StateSchemaOf<Q>>
  : undefined

/** The declared state as a value. */
export type DeclaredState =
  | { readonly _tag: "tensors"; readonly fields: Fields; readonly initial: (() => unknown) | undefined }
  | { readonly _tag: "value"; readonly schema: Schema.Top; readonly initial: () => unknown }
  | { readonly _tag: "none" }

export interface DeclaredSequence {
  readonly state: DeclaredState
  readonly sequencing: Sequencing
}

/** Checks the options. */
export const resolve = (name: string, signature: Signature, options: SequenceOptions): DeclaredSequence => {
  const { maxIdle = "1 minute", maxIdleLimit = maxIdle, maxSequences = 10_000 } = options
  const {
    maxBacklog = sequenceDefaults.maxBacklog,
    maxStateBytes = sequenceDefaults.maxStateBytes,
    maxTotalStateBytes = sequenceDefaults.maxTotalStateBytes,
  } = options
  const idleMillis = Duration.toMillis(maxIdle)
  requireTime(name, "maxIdle", idleMillis, idleMillis > 0, "longer than 0")
  const limitMillis = Duration.toMillis(maxIdleLimit)
  requireTime(
    name,
    "maxIdleLimit",
    limitMillis,
    limitMillis >= idleMillis,
    `at least sequence.maxIdle, ${idleMillis} ms`,
  )
  requireInteger(name, "sequence.maxSequences", maxSequences, 1)
  requireInteger(name, "sequence.maxBacklog", maxBacklog, 0)
  requireInteger(name, "sequence.maxStateBytes", maxStateBytes, 1)
  requireInteger(name, "sequence.maxTotalStateBytes", maxTotalStateBytes, 1)
  const state = declaredState(name, options)
  return {
    state,
    sequencing: {
      strategy: { _tag: "free", slots: maxSequences },
      maxIdle: idleMillis * 1e6,
      maxIdleLimit: limitMillis * 1e6,
      isIterative: false,
      controls: [],
      states: state._tag === "tensors" ? stateTensors(name, signature, state.fields) : [],
      maxBacklog,
      maxStateBytes,
      maxTotalStateBytes,
    },
  }
}

/** Every live sequence may have a request that waits. */
export const queueing = ({ strategy }: Sequencing): { readonly maxQueueSize?: number } =>
  strategy._tag === "free" ? { maxQueueSize: Math.max(defaultMaxQueueSize, strategy.slots) } : {}

const requireTime = (name: string, option: string, millis: number, isValid: boolean, rule: string): void => {
  if (isValid) return
  throw new TypeError(`Model "${name}": sequence.${option} must be ${rule}, but ${millis} ms was given.`)
}

const declaredState = (name: string, { state, initial }: SequenceOptions): DeclaredState => {
  if (state === undefined) return { _tag: "none" }
  if (!Schema.isSchema(state)) return { _tag: "tensors", fields: state, initial }
  if (initial === undefined) {
    throw new TypeError(`Model "${name}": sequence.initial must make the first state, because the state is a Schema.`)
  }
  return { _tag: "value", schema: state, initial }
}

const stateTensors = (
  model: string,
  { inputs, outputs }: Signature,
  fields: { readonly [name: string]: Field },
): ReadonlyArray<StateTensor> => {
  const specs = Object.entries(fields).map(([name, field]) => spec(name, field))
  for (const { name, optional } of specs) {
    if (optional) throw new TypeError(`Model "${model}": state '${name}' must not be optional.`)
    const other = inputs.some((input) => input.name === name) ? "an input" : "an output"
    if (other === "an output" && !outputs.some((output) => output.name === name)) continue
    throw new TypeError(`Model "${model}": state '${name}' has the name of ${other}.`)
  }
  return specs.map(({ name, datatype, dims }) => ({
    input: name,
    output: name,
    datatype,
    dims: wireDims(dims),
    // Made by InitialStates.ts.
    initial: undefined,
  }))
}
