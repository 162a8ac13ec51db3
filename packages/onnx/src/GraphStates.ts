/**
 * State and control tensors of an ONNX graph, for models with sequences: state inputs get what state outputs gave for
 * the request before, and control inputs tell the graph the position of the request.
 */
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { ControlTensor, Sequencing } from "@nereid/core/internal/model/Sequencing"
import * as SequenceInstance from "@nereid/core/internal/sequence/SequenceInstance"

/** An input of one element for each row, which the scheduler fills in. */
export type GraphControl =
  | {
      /** True for the first request of a sequence, for its last one, or for every request. */
      readonly kind: "START" | "END" | "READY"
      /** False is 0 and true is 1. */
      readonly datatype: "INT32" | "FP32" | "BOOL"
    }
  | {
      /** The id of the sequence. BYTES only takes strings, and the others only numbers; 32 bits have the low half. */
      readonly kind: "CORRID"
      readonly datatype: "UINT64" | "INT64" | "UINT32" | "INT32" | "BYTES"
    }

/** Names of the declared state tensors; never for a model without them. */
type StateNames<P extends Declared> = P extends { readonly sequence: { readonly state: infer S } }
  ? S extends Fields
    ? keyof S & string
    : never
  : never

/** Options of a model with sequences. */
export type StateOptions<P extends Declared> = P extends { readonly sequence: object }
  ? {
      /** Control inputs of the graph, by name. Default none. */
      readonly controls?: { readonly [input: string]: GraphControl }
    } & ([StateNames<P>] extends [never]
      ? { readonly state?: undefined }
      : {
          /**
           * The graph's outputs that hold the next state, by the graph's inputs of the state. The declared state has
           * the names of the inputs.
           */
          readonly state: { readonly [K in StateNames<P>]: string }
        })
  : { readonly state?: undefined; readonly controls?: undefined }

/** Refuses names in `state` that are not declared, by a text that the compiler prints. */
export type DeclaredStates<P extends Declared, Options> = Options extends { readonly state: infer S }
  ? { readonly state: { readonly [K in keyof S]: K extends StateNames<P> ? string : UndeclaredState<K & string> } }
  : unknown

/** An object: the compiler would reduce two texts to never. */
type UndeclaredState<K extends string> = { readonly mistake: `the model declares no state ${K}` }

interface UntypedOptions {
  readonly state?: { readonly [input: string]: string } | undefined
  readonly controls?: { readonly [input: string]: GraphControl } | undefined
}

/**
 * The sequences of the graph; undefined for a model without sequences.
 * @throws TypeError if the options do not fit the declaration
 */
export const resolve = (
  { name, state: declared, sequencing, signature }: Definition<Fields, Fields>,
  { state = {}, controls = {} }: UntypedOptions,
): Sequencing | undefined => {
  const refuse = (problem: string) => new TypeError(`Model "${name}": ${problem}.`)
  if (sequencing === undefined) {
    const given = Object.keys({ ...state, ...controls })
    if (given.length > 0) throw refuse(`it declares no sequence, but has the state or control '${given[0]}'`)
    return undefined
  }
  if (declared?._tag === "value") throw refuse("the state of an ONNX graph is tensors, but a Schema is declared")
  const names = sequencing.states.map(({ input }) => input)
  const stranger = Object.keys(state).find((input) => !names.includes(input))
  if (stranger !== undefined) throw refuse(`state '${stranger}' is not declared: the states are [${names.join(", ")}]`)
  const states = sequencing.states.map((tensor) => {
    const output = state[tensor.input]
    if (output === undefined) throw refuse(`state '${tensor.input}' has no output`)
    return { ...tensor, output }
  })
  const taken = new Set([...names, ...signature.inputs.map((input) => input.name)])
  const twice = Object.keys(controls).find((input) => taken.has(input))
  if (twice !== undefined) throw refuse(`control '${twice}' has the name of an input or a state`)
  return { ...sequencing, states, controls: Object.entries(controls).map(([name, control]) => tensorOf(name, control)) }
}

const tensorOf = (name: string, control: GraphControl): ControlTensor =>
  control.kind === "CORRID"
    ? { name, kind: control.kind, datatype: control.datatype }
    : { name, kind: control.kind, datatype: control.datatype, falseValue: 0, trueValue: 1 }

/** The model as the graph has it: with the states and controls among its inputs and outputs. */
export const graphDefinition = (
  definition: Definition<Fields, Fields>,
  sequencing: Sequencing | undefined,
): Definition<Fields, Fields> =>
  sequencing === undefined
    ? definition
    : { ...definition, sequencing, signature: SequenceInstance.innerSignature(definition.signature, sequencing) }
