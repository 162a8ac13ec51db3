/**
 * Sends each request once before the load and reads the whole reply, for checks that the load does not make. The load
 * expects replies of the same lengths.
 */
import { isDataType } from "@nereid/core/internal/tensor/DataType"
import { print } from "@nereid/core/internal/tensor/TensorSpec"
import { sizeProblem, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { ExpectedRequest, ModelClient, Traits } from "../target/ModelClient.ts"
import type { ModelTraits } from "../target/ModelTraits.ts"

export interface TrialResult {
  readonly requests: readonly [ExpectedRequest, ...ReadonlyArray<ExpectedRequest>]
  readonly traits: Traits
  /** Responses to the first request. */
  readonly responses: ReadonlyArray<WireResponse>
  /** Remarks on unexpected responses that are not errors. */
  readonly remarks: ReadonlyArray<string>
}

/**
 * Sends the requests. `hasLengths`: replies have a predictable length, which numbers as text do not.
 * @throws Error if a reply contradicts the model's metadata
 */
export const run = async (
  client: Pick<ModelClient, "infer">,
  model: ModelTraits,
  requests: readonly [WireRequest, ...ReadonlyArray<WireRequest>],
  hasLengths: boolean,
): Promise<TrialResult> => {
  const remarks = new Set<string>()
  const tryRequest = async (
    request: WireRequest,
  ): Promise<{ expected: ExpectedRequest; responses: ReadonlyArray<WireResponse> }> => {
    const { responses, length } = await client.infer(request)
    for (const response of responses) for (const remark of check(response, model)) remarks.add(remark)
    if (!hasLengths || model.decoupled) return { expected: { request, replyLength: undefined }, responses }
    if (responses.length !== 1) throw new Error(`${responses.length} responses to a request, expected one`)
    // Sent twice: a length that differs then may differ at any time.
    const repeated = await client.infer(request)
    if (repeated.length === length) return { expected: { request, replyLength: length }, responses }
    remarks.add(`responses to the same request have ${length} and ${repeated.length} bytes, so lengths are not checked`)
    return { expected: { request, replyLength: undefined }, responses }
  }
  const [first, ...others] = requests
  const { expected, responses } = await tryRequest(first)
  const rest: Array<ExpectedRequest> = []
  for (const request of others) rest.push((await tryRequest(request)).expected)
  const hasIds = responses.every(({ id }) => id !== "")
  return {
    requests: [expected, ...rest],
    traits: { decoupled: model.decoupled, hasIds },
    responses,
    remarks: [...remarks],
  }
}

/** @throws Error for what cannot be right; gives what only differs from the description. */
const check = ({ outputs }: WireResponse, model: ModelTraits): ReadonlyArray<string> =>
  outputs.flatMap(({ name, datatype, shape, bytes }) => {
    const subject = `the output '${name}' of the response`
    if (!isDataType(datatype)) throw new Error(`${subject} has the unknown datatype ${datatype}`)
    const problem = sizeProblem(new TypedTensor(datatype, shape, bytes))
    if (problem !== undefined) throw new Error(`${subject}: ${problem}`)
    const described = model.outputs.find((output) => output.name === name)
    if (described === undefined) return model.outputs.length === 0 ? [] : [`${subject} is not in the model metadata`]
    const fits =
      described.datatype === datatype &&
      described.shape.length === shape.length &&
      described.shape.every((extent, axis) => extent === -1 || extent === shape[axis])
    const [got, expected] = [print(datatype, shape), print(described.datatype, described.shape)]
    return fits ? [] : [`${subject} is ${got}, but ${expected} in the model metadata`]
  })
