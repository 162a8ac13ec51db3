/**
 * The live view of a server: it samples once per second, keeps the last minutes, and sends them to viewers. It exists
 * only while the dashboard is on.
 *
 *   timer ─► StepSampler ─► StepRing ─► opening of a new viewer
 *                             └──────► EventStream ─► all viewers, the same bytes
 */
import type { Advice } from "@nereid/dashboard/internal/live/Advice"
import type { LiveModel } from "@nereid/dashboard/internal/live/LiveModel"
import type { LiveMessage, Opening } from "@nereid/dashboard/internal/live/LiveMessage"
import { type LiveStep, stepMillis } from "@nereid/dashboard/internal/live/LiveStep"
import { Effect, type Scope } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
import type { OutgoingResponse } from "../port/HttpExchange.ts"
import * as Advisor from "./advice/Advisor.ts"
import { event, EventStream } from "./EventStream.ts"
import * as LiveModels from "./LiveModels.ts"
import { SlowRequests } from "./SlowRequests.ts"
import { StepRing } from "./StepRing.ts"
import { type SamplerClock, StepSampler, systemClock } from "./StepSampler.ts"

/** Steps between two reviews of the advice, while there are viewers. */
const adviceInterval = 5

/** Samples until the scope closes. Streams end when the server begins to stop. */
export const make = (gateway: Gateway): Effect.Effect<LiveView, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const view = new LiveView(gateway)
      view.start()
      return view
    }),
    (view) => Effect.sync(() => view.close()),
  )

export class LiveView {
  readonly #gateway: Gateway
  readonly #slow: SlowRequests
  readonly #sampler: StepSampler
  readonly #ring = new StepRing()
  readonly #viewers = new EventStream()
  readonly #clock: SamplerClock
  readonly #started: number
  /** The last steps, for advice. */
  readonly #recent: Array<LiveStep> = []
  readonly #stop = () => this.#viewers.close()
  #models = ""
  #advice = ""
  #timer: NodeJS.Timeout | undefined

  constructor(gateway: Gateway, clock: SamplerClock = systemClock) {
    this.#gateway = gateway
    this.#clock = clock
    this.#started = clock.epoch()
    this.#slow = new SlowRequests(clock.epoch)
    this.#sampler = new StepSampler(gateway, this.#slow, clock)
    gateway.stopping.addEventListener("abort", this.#stop)
  }

  /** Number of open streams. */
  get viewers(): number {
    return this.#viewers.size
  }

  /** Begins to sample once per second. */
  start(): void {
    this.#timer ??= setInterval(() => this.step(), stepMillis).unref()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#gateway.stopping.removeEventListener("abort", this.#stop)
    this.#viewers.close()
    this.#sampler.close()
  }

  /** Ends a step, sends and returns it. */
  step(): LiveStep {
    const step = this.#sampler.step()
    this.#recent.push(step)
    if (this.#recent.length > Advisor.maxSteps) this.#recent.shift()
    const json = this.#ring.add(step)
    const isSlowChanged = this.#slow.review()
    if (this.#viewers.size > 0) this.#send(step, json, isSlowChanged)
    return step
  }

  #send(step: LiveStep, json: Buffer, isSlowChanged: boolean): void {
    let events = event(`{"type":"step","step":${json.toString()}}`)
    if (isSlowChanged) events += message({ type: "slow", slow: this.#slow.all() })
    const models = this.#describe()
    if (models !== undefined) events += models
    if (step.index % adviceInterval === 0) events += this.#advise() ?? ""
    this.#viewers.send(Buffer.from(events))
  }

  /** The advice that follows from the last steps. */
  advice(models: ReadonlyArray<LiveModel> = LiveModels.make(this.#gateway)): ReadonlyArray<Advice> {
    return Advisor.advise({ steps: this.#recent, models, heldLimit: this.#gateway.memory.limit })
  }

  /** Answers a request with the stream. */
  open(response: OutgoingResponse): void {
    this.#viewers.open(response, () => this.#opening())
  }

  #opening(): ReadonlyArray<Uint8Array> {
    const { metadata, memory, controlMode } = this.#gateway
    const models = LiveModels.make(this.#gateway)
    const advice = this.advice(models)
    const opening: Omit<Opening, "steps"> = {
      type: "opening",
      time: this.#clock.epoch(),
      server: {
        name: metadata.name,
        version: metadata.version,
        started: this.#started,
        control: controlMode(),
        heldLimit: Number.isFinite(memory.limit) ? memory.limit : null,
      },
      models,
      slow: this.#slow.all(),
      advice,
    }
    if (this.#viewers.size <= 1) {
      this.#models = JSON.stringify(models)
      this.#advice = JSON.stringify(advice)
    }
    const head = JSON.stringify(opening).slice(0, -1)
    return [Buffer.from(`data: ${head},"steps":[`), ...this.#ring.chunks(), Buffer.from("]}\n\n")]
  }

  /** The message about the models; undefined if nothing has changed since the last one. */
  #describe(): string | undefined {
    const models = JSON.stringify(LiveModels.make(this.#gateway))
    if (models === this.#models) return undefined
    this.#models = models
    return event(`{"type":"models","models":${models}}`)
  }

  #advise(): string | undefined {
    const advice = JSON.stringify(this.advice())
    if (advice === this.#advice) return undefined
    this.#advice = advice
    return event(`{"type":"advice","advice":${advice}}`)
  }
}

const message = (content: LiveMessage): string => event(JSON.stringify(content))
