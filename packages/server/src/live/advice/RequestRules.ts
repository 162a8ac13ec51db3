/** Rules about requests: why the queue refuses them, why they fail, and what their time is spent on. */
import type { Finding, ModelRule } from "./Rule.ts"
import { figure, percent, rounded } from "./Rule.ts"
import type { ModelWindow } from "./LoadWindow.ts"
import { optionName } from "./OptionName.ts"

/** Share of all requests from which refusals and failures count. */
const notable = 0.005

const shareOf = (count: number, { requests, errors }: ModelWindow): number => {
  const all = requests + errors.REJECTED + errors.CANCELED + errors.BACKEND + errors.OTHER
  return all === 0 ? 0 : count / all
}

/** Advice about `count` requests; none if they are too few. */
const refused = (
  model: ModelWindow,
  count: number,
  because: string,
  rest: Pick<Finding, "option" | "guide">,
): Finding | undefined => {
  const share = shareOf(count, model)
  if (count === 0 || share < notable) return undefined
  const text = `${count} requests (${percent(share)}) were refused: ${because}`
  return { severity: "problem", text, figure: { name: "refused requests", value: count, unit: "" }, ...rest }
}

export const queueFull: ModelRule = {
  kind: "queue-full",
  find: (model) =>
    refused(
      model,
      model.refusals.full,
      `the queue of ${model.maxQueueSize} was full. Add instances; a longer queue only adds waiting.`,
      {
        option: `${optionName("instances", model)}, ${optionName("maxQueueSize", model)}`,
        guide: "queues.md",
      },
    ),
}

export const queueTimeouts: ModelRule = {
  kind: "queue-timeouts",
  find: (model) =>
    refused(
      model,
      model.refusals.timeout,
      `their queue timeout passed before an instance was free. Add instances, or allow more time in the queue.`,
      {
        option: `${optionName("instances", model)}, ${optionName("defaultTimeout", model)}`,
        guide: "queues.md#queue-timeouts",
      },
    ),
}

export const deadlines: ModelRule = {
  kind: "deadlines",
  find: (model) =>
    refused(
      model,
      model.refusals.deadline,
      `the deadline of their callers passed in the queue. Add instances, or allow longer deadlines.`,
      { option: `${optionName("instances", model)}, the deadline of the client`, guide: "queues.md" },
    ),
}

export const failures: ModelRule = {
  kind: "failures",
  find: (model) => {
    const { BACKEND: count } = model.errors
    const share = shareOf(count, model)
    if (count < 3 || share < notable) return undefined
    return {
      severity: "problem",
      text: `${count} requests (${percent(share)}) failed in the model. The log has the errors.`,
      figure: { name: "failed requests", value: count, unit: "" },
      option: "logging",
      guide: "operations.md#logging",
    }
  },
}

/** Lookups from which a hit rate counts. */
const enoughLookups = 100

export const idleCache: ModelRule = {
  kind: "idle-cache",
  find: (model) => {
    const lookups = model.hits + model.misses
    const rate = model.hits / lookups
    if (!model.cache || lookups < enoughLookups || rate >= 0.05) return undefined
    return {
      severity: "improvement",
      text: `The response cache answers ${percent(rate)} of ${lookups} requests. Each of the others costs a digest of its inputs, and memory.`,
      figure: { name: "hit rate", value: rounded(rate * 100), unit: "%" },
      option: optionName("responseCache", model),
      guide: "warm-up-and-cache.md#response-cache",
    }
  },
}

/** Requests, and milliseconds of each, from which copies count. */
const enoughRequests = 20
const longCopy = 1

export const tensorCopies: ModelRule = {
  kind: "tensor-copies",
  find: (model) => {
    const { copyMillis, computeMillis, requests, source } = model
    if (requests < enoughRequests || copyMillis < longCopy || copyMillis <= computeMillis) return undefined
    const remedy =
      source === "onnx"
        ? "Declare smaller datatypes, such as UINT8 pictures, and compute with them in the model."
        : "Let the handler take whole batches, and declare smaller datatypes."
    return {
      severity: "problem",
      text: `Moving tensors takes ${figure(copyMillis)} ms of each request, and its execution ${figure(computeMillis)} ms. ${remedy}`,
      figure: { name: "moving tensors", value: rounded(copyMillis), unit: "ms" },
      option: source === "onnx" ? "datatypes of inputs and outputs" : "Model.batch, datatypes of inputs and outputs",
      guide: "choosing.md",
    }
  },
}
