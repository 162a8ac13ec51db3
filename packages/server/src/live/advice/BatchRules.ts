/**
 * Rules about batches and instances. A free instance takes all that waits, so requests wait only while every instance
 * is busy, or for `maxQueueDelay`.
 */
import type { ModelWindow } from "./LoadWindow.ts"
import { optionName } from "./OptionName.ts"
import { figure, type ModelRule, percent, rounded } from "./Rule.ts"

/** Share of its time that an instance of a saturated model is busy, at least. */
const busyShare = 0.8

/** Requests that wait at the end of a step on average, at least. */
const manyWaiting = 4

/** Executions from which averages count. */
const enoughExecutions = 20

const isSaturated = ({ instances, meanBusy }: ModelWindow): boolean =>
  instances > 0 && meanBusy >= busyShare * instances

const isCrowded = (model: ModelWindow): boolean => isSaturated(model) && model.meanQueue >= manyWaiting

export const noBatching: ModelRule = {
  kind: "no-batching",
  find: (model) => {
    const { maxBatchSize, decoupled, source, meanQueue } = model
    const mayBatch = source === "code" || source === "onnx" || source === "script"
    if (maxBatchSize > 1 || decoupled || !mayBatch || !isCrowded(model)) return undefined
    const text = `Each request is executed by itself, while ${figure(meanQueue)} requests wait on average. Batches would execute them together.`
    return {
      severity: "problem",
      text,
      figure: { name: "waiting requests", value: rounded(meanQueue), unit: "" },
      option: optionName("maxBatchSize", model),
      guide: "batching.md",
    }
  },
}

export const fullBatches: ModelRule = {
  kind: "full-batches",
  find: (model) => {
    const { maxBatchSize, decoupled, meanRows, meanQueue } = model
    if (maxBatchSize <= 1 || decoupled || meanRows < 0.9 * maxBatchSize || !isCrowded(model)) return undefined
    const text = `Batches are full, with ${figure(meanRows)} of at most ${maxBatchSize} rows, while ${figure(meanQueue)} requests wait on average. Allow larger batches, or add instances.`
    return {
      severity: "problem",
      text,
      figure: { name: "waiting requests", value: rounded(meanQueue), unit: "" },
      option: `${optionName("maxBatchSize", model)}, ${optionName("instances", model)}`,
      guide: "batching.md",
    }
  },
}

export const smallBatches: ModelRule = {
  kind: "small-batches",
  find: (model) => {
    const { maxBatchSize, decoupled, meanRows, meanQueue, executions } = model
    const isSmall = executions > 0 && meanRows <= maxBatchSize / 2 && meanQueue >= 2 * meanRows
    if (maxBatchSize <= 1 || decoupled || !isSmall || !isCrowded(model)) return undefined
    const text = `Batches have ${figure(meanRows)} rows on average, of at most ${maxBatchSize}, while ${figure(meanQueue)} requests wait that cannot share one. Add instances, or let requests of different shapes share batches.`
    return {
      severity: "problem",
      text,
      figure: { name: "rows of a batch", value: rounded(meanRows), unit: "" },
      option: optionName("instances", model),
      guide: "batching.md#ragged-inputs",
    }
  },
}

export const saturated: ModelRule = {
  kind: "saturated",
  find: (model) => {
    const { instances, meanBusy, queueMillis, computeMillis, copyMillis, requests } = model
    const isWaiting = requests >= enoughExecutions && queueMillis > computeMillis + copyMillis && queueMillis >= 1
    if (!isSaturated(model) || !isWaiting) return undefined
    const text = `Instances are busy ${percent(meanBusy / instances)} of the time, and a request waits ${figure(queueMillis)} ms for an execution of ${figure(computeMillis)} ms. Add instances, or servers if the processors are busy.`
    return {
      severity: "problem",
      text,
      figure: { name: "time in the queue", value: rounded(queueMillis), unit: "ms" },
      option: optionName("instances", model),
      guide: "instances.md",
    }
  },
}

export const uselessDelay: ModelRule = {
  kind: "useless-delay",
  find: (model) => {
    const { maxQueueDelay, executions, meanRequests, queueMillis } = model
    const isAlone = executions >= enoughExecutions && meanRequests < 1.2
    if (maxQueueDelay === 0 || !isAlone || queueMillis < maxQueueDelay / 2) return undefined
    const text = `A request waits ${figure(queueMillis)} ms for others, but batches have ${figure(meanRequests)} requests on average. Without the delay, a free instance takes all that waits.`
    return {
      severity: "problem",
      text,
      figure: { name: "time in the queue", value: rounded(queueMillis), unit: "ms" },
      option: optionName("maxQueueDelay", model),
      guide: "batching.md",
    }
  },
}

/** Requests from which an unused instance is not a matter of chance. */
const enoughRequests = 20

/** Steps from which the busiest one counts. */
const enoughSteps = 20

export const idleInstances: ModelRule = {
  kind: "idle-instances",
  find: (model, steps) => {
    const { instances, peakBusy, requests } = model
    if (instances < 2 || peakBusy > instances / 2 || requests < enoughRequests || steps < enoughSteps) return undefined
    const text = `Of ${instances} instances, at most ${figure(peakBusy)} were busy in any second. Fewer instances need less memory.`
    return {
      severity: "improvement",
      text,
      figure: { name: "busy instances", value: rounded(peakBusy), unit: "" },
      option: optionName("instances", model),
      guide: "instances.md",
    }
  },
}
