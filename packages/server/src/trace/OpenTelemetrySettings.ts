/** Settings of the OpenTelemetry mode of traces: the receiver of the spans, and the limits of the export. */
import { Duration, Option } from "effect"

export interface OpenTelemetryOptions {
  /** URL of the receiver. Default `http://localhost:4318/v1/traces`. */
  readonly url?: string
  /** Headers of requests to the receiver, such as a token. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** Attributes of the resource. Default: `service.name`, with the id of the server. */
  readonly resource?: Readonly<Record<string, string>>
  /** Maximum spans that wait; further ones are dropped. Default 2048. */
  readonly maxQueueSize?: number
  /** Delay between two exports. Default 5 seconds. */
  readonly scheduleDelay?: Duration.Input
  /** Maximum spans of one request to the receiver. As many spans are sent at once. Default 512. */
  readonly maxExportBatchSize?: number
}

export interface OpenTelemetrySettings extends Required<Omit<OpenTelemetryOptions, "scheduleDelay">> {
  readonly scheduleDelay: Duration.Duration
}

/** Largest queue: a span has about 1 KB. */
const maxQueueSizes = 1_000_000

/**
 * The settings with defaults.
 * @throws TypeError if an option is invalid
 */
export const make = (options: OpenTelemetryOptions, service: string): OpenTelemetrySettings => {
  const { url = "http://localhost:4318/v1/traces", headers = {}, resource = {} } = options
  const { maxQueueSize = 2048, maxExportBatchSize = 512 } = options
  const scheduleDelay = Option.getOrUndefined(Duration.fromInput(options.scheduleDelay ?? "5 seconds"))
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new TypeError(`trace.openTelemetry.url must be an http or https URL, but ${url} was given`)
  }
  const sizes = { maxQueueSize, maxExportBatchSize }
  for (const [name, size] of Object.entries(sizes)) {
    if (!Number.isSafeInteger(size) || size < 1 || size > maxQueueSizes) {
      throw new TypeError(
        `trace.openTelemetry.${name} must be an integer from 1 to ${maxQueueSizes}, but ${size} was given`,
      )
    }
  }
  if (scheduleDelay === undefined || !(Duration.toMillis(scheduleDelay) < 2 ** 31)) {
    throw new TypeError("trace.openTelemetry.scheduleDelay must be a time below 24 days")
  }
  // A batch that is larger than the queue would never be full.
  const size = Math.min(maxExportBatchSize, maxQueueSize)
  const named = { "service.name": service, ...resource }
  return { url, headers, resource: named, maxQueueSize, scheduleDelay, maxExportBatchSize: size }
}

/** Values as strings, under the names of Triton's settings. The URL and the resource only if they were given. */
export const texts = (options: OpenTelemetryOptions): Readonly<Record<string, string>> => {
  const { maxQueueSize, scheduleDelay, maxExportBatchSize } = make(options, "")
  const { url, resource } = options
  const attributes = Object.entries(resource ?? {}).map((pair) => pair.join("="))
  return {
    ...(url === undefined ? {} : { url: withoutUser(url) }),
    ...(attributes.length === 0 ? {} : { resource: attributes.join(",") }),
    bsp_max_queue_size: String(maxQueueSize),
    bsp_schedule_delay: String(Duration.toMillis(scheduleDelay)),
    bsp_max_export_batch_size: String(maxExportBatchSize),
  }
}

/** Without a user and a password, which callers must not see. */
export const withoutUser = (url: string): string => {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
