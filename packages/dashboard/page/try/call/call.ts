/** Sends requests of the form, and reads their answers. */
import { events } from "../../api/events.ts"
import { send } from "../../api/http.ts"
import { Refusal } from "../../api/Refusal.ts"
import type { Model } from "../../api/Model.ts"
import { isObject, type Json, read, write } from "../json/Json.ts"
import { type Attempt, parametersOf, pathOf, type SequenceStep } from "./Attempt.ts"
import * as GenerateRequest from "./GenerateRequest.ts"
import * as InferRequest from "./InferRequest.ts"
import { type Answer, decodeGenerate, decodeInfer } from "./Output.ts"
import { parse, type ServerTiming } from "./ServerTiming.ts"

export interface Timed {
  /** From the request until the whole response has arrived, in milliseconds. */
  readonly milliseconds: number
  readonly timing: ServerTiming | undefined
}

export interface Unary extends Timed {
  readonly answer: Answer
}

/** A request that can be sent any number of times. */
export interface Prepared {
  readonly path: string
  readonly init: RequestInit
}

/** Asks the server for its own times. */
const timing = { "nereid-timing": "1" }

/** @throws Invalid for inputs that cannot be sent */
export const prepare = (attempt: Attempt): Prepared => {
  if (attempt.model.decoupled) {
    const body = GenerateRequest.make(attempt)
    const headers = { "content-type": "application/json", ...timing }
    return { path: pathOf(attempt.model, "generate_stream"), init: { method: "POST", headers, body } }
  }
  const { headers, body } = InferRequest.make(attempt)
  return { path: pathOf(attempt.model, "infer"), init: { method: "POST", headers: { ...headers, ...timing }, body } }
}

/** Sends a request, and reads the whole response without decoding it. */
export const measure = async ({ path, init }: Prepared, signal: AbortSignal): Promise<Timed> => {
  const start = performance.now()
  const response = await send(path, { ...init, signal })
  const body = await response.arrayBuffer()
  const milliseconds = performance.now() - start
  const problem = path.endsWith("/generate_stream") ? streamProblem(new TextDecoder().decode(body)) : undefined
  if (problem !== undefined) throw problem
  return { milliseconds, timing: parse(response.headers.get("server-timing")) }
}

/** The error that a stream ends with. */
const streamProblem = (text: string): Refusal | undefined => {
  const last = text.trimEnd().split("\n").at(-1) ?? ""
  const json = last.startsWith("data: ") ? tried(last.slice(6)) : undefined
  return isObject(json) && typeof json["error"] === "string" ? new Refusal(json["error"], 200) : undefined
}

const tried = (text: string): Json | undefined => {
  try {
    return read(text)
  } catch {
    return undefined
  }
}

export const infer = async (attempt: Attempt, signal: AbortSignal): Promise<Unary> => {
  const { path, init } = prepare(attempt)
  const start = performance.now()
  const response = await send(path, { ...init, signal })
  const body = new Uint8Array(await response.arrayBuffer())
  const milliseconds = performance.now() - start
  const length = response.headers.get("inference-header-content-length")
  const answer = decodeInfer(body, length === null ? undefined : Number(length), attempt.model)
  return { answer, milliseconds, timing: parse(response.headers.get("server-timing")) }
}

/** Ends a sequence without a request, as far as the server still has it. */
export const leave = async (model: Model, sequence: SequenceStep): Promise<void> => {
  const parameters = parametersOf({
    parameters: { sequence_close: true },
    sequence: { ...sequence, isStart: false, isEnd: true },
  })
  const [verb, body] = model.decoupled ? ["generate_stream", { parameters }] : ["infer", { parameters, inputs: [] }]
  const headers = { "content-type": "application/json" }
  // Also when the page closes.
  await send(pathOf(model, verb), { method: "POST", headers, body: write(body), keepalive: true }, true)
}

export interface Event {
  readonly answer: Answer
  /** Since the request, in milliseconds. */
  readonly at: number
}

export interface Streamed extends Timed {
  /** The error that the stream ends with. */
  readonly problem: Refusal | undefined
}

/** Sends a request to a decoupled model; `onEvent` has each response as it arrives. */
export const stream = async (
  attempt: Attempt,
  signal: AbortSignal,
  onEvent: (event: Event) => void,
): Promise<Streamed> => {
  const { path, init } = prepare(attempt)
  const start = performance.now()
  const response = await send(path, { ...init, signal })
  let problem: Refusal | undefined
  for await (const data of events(response)) {
    const json = read(data)
    if (isObject(json) && typeof json["error"] === "string" && Object.keys(json).length === 1) {
      problem = new Refusal(json["error"], response.status)
      break
    }
    onEvent({ answer: decodeGenerate(json, attempt.model), at: performance.now() - start })
  }
  const milliseconds = performance.now() - start
  return { problem, milliseconds, timing: parse(response.headers.get("server-timing")) }
}
