/** Rules about the process. */
import type { ModelWindow } from "./LoadWindow.ts"
import { lateMillis } from "./LoadWindow.ts"
import { figure, percent, type ProcessRule, rounded } from "./Rule.ts"

/** Steps with a late event loop, at least. */
const enoughLateSteps = 3

export const eventLoopLate: ProcessRule = {
  kind: "event-loop-late",
  find: ({ steps, lateSteps, delayMax, models }) => {
    if (lateSteps < enoughLateSteps) return undefined
    const suspect = models.filter(mayBlock).toSorted((one, other) => totalCompute(other) - totalCompute(one))[0]
    const late = `The event loop was late by up to ${figure(delayMax)} ms, and by more than ${lateMillis} ms in ${lateSteps} of ${steps} seconds.`
    const delay = { name: "delay of the event loop", value: rounded(delayMax), unit: "ms" as const }
    if (suspect === undefined) {
      const text = `${late} No handler in this thread computed that long; large JSON bodies and a busy machine are common causes.`
      return { severity: "problem", text, figure: delay, option: "binary tensors", guide: "clients.md" }
    }
    const { name: model, version, lateComputeMillis, origin } = suspect
    return {
      model,
      version,
      severity: "problem",
      text: `${late} This handler, which computed for ${figure(lateComputeMillis)} ms per request then, probably blocks it: run it in a worker.`,
      figure: delay,
      option: origin === "code" ? "Worker.layer" : "parameters.worker_threads",
      guide: "workers.md",
    }
  },
}

/** Whether the handler of a model runs in the thread of the server, and computes long enough to explain the delay. */
const mayBlock = ({ threaded, source, lateComputeMillis }: ModelWindow): boolean =>
  !threaded && (source === "code" || source === "script") && lateComputeMillis >= lateMillis / 2

const totalCompute = ({ computeMillis, requests }: ModelWindow): number => computeMillis * requests

export const heldMemory: ProcessRule = {
  kind: "held-memory",
  find: ({ heldMax, heldLimit }) => {
    const share = heldMax / heldLimit
    if (!(share >= 0.8)) return undefined
    return {
      severity: "problem",
      text: `Requests and responses of callers hold ${percent(share)} of the memory that they may hold. Above that, requests are refused. Send smaller or fewer requests at a time, or allow more memory.`,
      figure: { name: "memory held by callers", value: rounded(share * 100), unit: "%" },
      option: "maxInFlightSize, --max-in-flight-size",
      guide: "limits.md#requests",
    }
  },
}
