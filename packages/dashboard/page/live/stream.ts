/** Live data of the server: one stream for all views, which is opened again when it ends. */
import { batch, signal } from "@preact/signals"
import type { Advice } from "../../src/live/Advice.ts"
import { livePath, type LiveMessage, type ServerFacts } from "../../src/live/LiveMessage.ts"
import type { LiveModel } from "../../src/live/LiveModel.ts"
import { type LiveStep, maxSteps } from "../../src/live/LiveStep.ts"
import type { SlowRequest } from "../../src/live/SlowRequest.ts"
import { messages } from "../api/events.ts"
import { refresh } from "../api/models.ts"

export const server = signal<ServerFacts | undefined>(undefined)
export const models = signal<ReadonlyArray<LiveModel>>([])
/** The oldest first. */
export const steps = signal<ReadonlyArray<LiveStep>>([])
/** The slowest first. */
export const slow = signal<ReadonlyArray<SlowRequest>>([])
export const advice = signal<ReadonlyArray<Advice>>([])

const receive = (message: LiveMessage): void => {
  switch (message.type) {
    case "opening":
      return batch(() => {
        server.value = message.server
        models.value = message.models
        steps.value = message.steps
        slow.value = message.slow
        advice.value = message.advice
        void refresh()
      })
    case "step":
      return void (steps.value = [...steps.value, message.step].slice(-maxSteps))
    case "models":
      models.value = message.models
      return void refresh()
    case "slow":
      return void (slow.value = message.slow)
    case "advice":
      return void (advice.value = message.advice)
  }
}

/** The live data of a model; an empty version is that of the first one. */
export const liveModel = (name: string, version: string): LiveModel | undefined =>
  models.value.find((model) => model.name === name && (version === "" || model.version === version))

export const stream = messages(livePath, receive)
