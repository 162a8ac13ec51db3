/** Formats the current span as W3C's traceparent, for an HTTP header or gRPC metadata. */
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"

/** Returns the header; empty without a span. */
export const headers = ({ parent }: WireRequest): Readonly<Record<string, string>> =>
  parent === undefined ? {} : { traceparent: `00-${parent.traceId}-${parent.spanId}-0${parent.sampled ? 1 : 0}` }
