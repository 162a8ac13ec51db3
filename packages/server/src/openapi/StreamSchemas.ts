/**
 * The schemas of the streams that the page of a server reads. The types of the messages, with units, are those of
 * `@nereid/dashboard`; a test compares messages of a server with these schemas.
 */
import { Components } from "@nereid/core/internal/openapi/Components"
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import { adviceKinds } from "@nereid/dashboard/internal/live/Advice"

export interface StreamSchemas {
  readonly schemas: { readonly [name: string]: SchemaObject }
  /** References to the message of each stream. */
  readonly live: SchemaObject
  readonly log: SchemaObject
}

export const make = (): StreamSchemas => {
  const components = new Components("")
  const add = (name: string, schema: SchemaObject) => components.add(name, schema)
  const model = add("LiveModel", liveModel)
  const step = add("LiveStep", liveStep)
  const slow = add("LiveSlowRequest", slowRequest)
  const advice = add("LiveAdvice", adviceSchema)
  const line = add("LogLine", logLine)
  const lists = { models: array(model), slow: array(slow), advice: array(advice) }
  const opening = message("opening", { time, server, ...lists, steps: array(step) })
  return {
    live: add("LiveMessage", {
      description: "The first message is the opening. Each second brings a step, and others follow if they changed",
      anyOf: [
        opening,
        message("step", { step }),
        message("models", { models: lists.models }),
        message("slow", { slow: lists.slow }),
        message("advice", { advice: lists.advice }),
      ],
    }),
    log: add("LogMessage", {
      description: "The first message is the opening, with the last lines",
      anyOf: [message("opening", { lines: array(line) }), message("lines", { lines: array(line) })],
    }),
    schemas: components.schemas,
  }
}

const string: SchemaObject = { type: "string" }
const boolean: SchemaObject = { type: "boolean" }
const count: SchemaObject = { type: "integer", minimum: 0 }
const positive: SchemaObject = { type: "number", minimum: 0 }
const time = { type: "number", description: "Milliseconds since the epoch" }
const millis = { ...positive, description: "Milliseconds" }
const bytes = { ...count, description: "Bytes" }

const array = (items: SchemaObject): SchemaObject => ({ type: "array", items })
const oneOf = (...values: ReadonlyArray<string>): SchemaObject => ({ type: "string", enum: values })

const object = (
  required: { readonly [name: string]: SchemaObject },
  optional: { readonly [name: string]: SchemaObject } = {},
): SchemaObject => ({
  type: "object",
  properties: { ...required, ...optional },
  ...(Object.keys(required).length === 0 ? {} : { required: Object.keys(required) }),
})

const message = (type: string, members: { readonly [name: string]: SchemaObject }): SchemaObject =>
  object({ type: { type: "string", const: type }, ...members })

const server = object({
  name: string,
  version: string,
  started: time,
  control: oneOf("none", "poll", "explicit"),
  heldLimit: { type: ["integer", "null"], description: "Bytes that callers may make the server hold; null: no limit" },
})

const liveModel = object(
  {
    name: string,
    version: string,
    state: oneOf("UNKNOWN", "READY", "UNAVAILABLE", "LOADING", "UNLOADING"),
    reason: string,
  },
  {
    running: object({
      source: oneOf("code", "onnx", "script", "ensemble", "remote"),
      origin: oneOf("code", "repository"),
      threaded: boolean,
      decoupled: boolean,
      maxBatchSize: count,
      maxQueueSize: count,
      maxQueueDelay: millis,
      instances: count,
      cache: boolean,
    }),
  },
)

const reasons = ["REJECTED", "CANCELED", "BACKEND", "OTHER"] as const

const counts = (names: ReadonlyArray<string>): SchemaObject =>
  object({}, Object.fromEntries(names.map((name) => [name, count])))

const parts = (unit: string): SchemaObject => ({
  ...array(positive),
  minItems: 4,
  maxItems: 4,
  description: `${unit} in the queue, input, compute and output`,
})

const modelStep = object(
  { name: string, version: string },
  {
    requests: count,
    errors: counts(reasons),
    refusals: counts(["full", "timeout", "deadline"]),
    rows: count,
    batches: { ...array(count), description: "Pairs of rows and executions" },
    latency: { ...array(count), description: "Pairs of a bucket and its requests" },
    parts: parts("Microseconds of all requests"),
    queue: count,
    oldest: millis,
    busy: { ...positive, description: "Busy instances on average" },
    hits: count,
    misses: count,
    sequences: count,
  },
)

const liveStep = object({
  index: count,
  time,
  millis,
  process: object({
    cpu: { ...positive, description: "Share of one core" },
    memory: bytes,
    heap: bytes,
    buffers: bytes,
    delayMax: millis,
    delayP99: millis,
    connections: count,
    inFlight: count,
    held: bytes,
  }),
  models: array(modelStep),
})

const slowRequest = object(
  {
    name: string,
    version: string,
    id: string,
    time,
    millis,
    outcome: oneOf("success", ...reasons),
    batch: { ...count, description: "Rows of its batch; 0 without an execution" },
  },
  { parts: parts("Milliseconds") },
)

const adviceSchema = object(
  {
    id: string,
    kind: oneOf(...adviceKinds),
    severity: oneOf("problem", "improvement"),
    text: string,
    figure: object({ name: string, value: { type: "number" }, unit: oneOf("", "ms", "%") }),
    option: string,
    guide: { ...string, description: "Page and heading of the guides" },
  },
  { model: string, version: string },
)

const logLine = object(
  { index: count, time, level: oneOf("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"), text: string },
  {
    model: string,
    requestId: string,
    annotations: { type: "object", additionalProperties: { type: ["string", "number", "boolean"] } },
  },
)
