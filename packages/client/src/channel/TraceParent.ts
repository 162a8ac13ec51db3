/** The span that a request is part of, as servers are told of it: W3C's traceparent, a header or a part of gRPC's metadata. */
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"

/** Nothing where nobody traces. */
export const headers = ({ parent }: WireRequest): { readonly traceparent?: string } =>
  parent === undefined ? {} : { traceparent: `00-${parent.traceId}-${parent.spanId}-0${parent.sampled ? 1 : 0}` }
