/** The options of a server, as `Server.layer` and `Server.start` take them. The command's flags are in cli/src/flags. */
import type { Duration } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import type { Restriction } from "./gateway/RestrictedApis.ts"
import type { ResponseCompression } from "./grpc/GrpcCompression.ts"
import type { Keepalive } from "./grpc/Keepalive.ts"
import type { ModelRoutes } from "./http/HttpModelRoutes.ts"
import type * as Logging from "./log/Logging.ts"
import type { MetricsOptions } from "./metrics/PrometheusMetrics.ts"
import type * as Cors from "./port/Cors.ts"
import type { Tls } from "./port/Tls.ts"
import type { TraceSettings } from "./trace/TraceSettings.ts"

/** Where a front end listens: a port on all addresses, a port on one, or false for nowhere. Port 0: a free one. */
export type Listen = number | false | { readonly host: string; readonly port: number }

export interface ServerOptions {
  /** HTTP. Default 8000. */
  readonly http?: Listen
  /** gRPC, Connect and gRPC-Web. Default 8001. */
  readonly grpc?: Listen
  /**
   * All that these two answer, over HTTP/1.1 and HTTP/2, on one port beside them. Where it is the port of one of them, that
   * one has none of its own. Default false.
   */
  readonly port?: Listen
  /** Prometheus' /metrics. Default 8002. */
  readonly metrics?: Listen
  /** What /metrics tells: latency counters and summaries, the machine. */
  readonly metricsOptions?: MetricsOptions
  /** Certificates of these ports, from files; a port without speaks plaintext. Default none. */
  readonly tls?: { readonly http?: Tls; readonly grpc?: Tls; readonly port?: Tls }
  /** What browsers let pages of other origins ask, on all ports but that of metrics. Default none. */
  readonly cors?: Cors.Cors
  /** The server's name in its metadata. Default nereid. */
  readonly id?: string
  /** The largest HTTP body, in bytes. Default 64 MiB. */
  readonly maxInputSize?: number
  /** The largest gRPC message, in bytes. Default 256 MiB, at most 2 GiB - 1. */
  readonly maxMessageSize?: number
  /** Of gRPC's answers to inferences, where the caller accepts it; gzip, deflate and brotli. Default "none". */
  readonly responseCompression?: ResponseCompression
  /** What becomes of gRPC's connections that are dead, that ping too much or that are old. Default as in gRPC itself. */
  readonly keepalive?: Keepalive
  /** Bytes that requests hold together until they are answered. Default half of the memory that the process may use. */
  readonly maxInFlightSize?: number
  /** Connections at one time, on each port; one more is closed at once. Default 10,000. */
  readonly maxConnections?: number
  /** Whether gRPC inference, unary and streams, takes its own path before Connect. Default true; false to compare them. */
  readonly fastInference?: boolean
  /**
   * Headers (HTTP) and metadata (gRPC) that become parameters of their requests: a regular expression each, that matches
   * any part of a name, whatever the case unless it begins with `(?-i)`. Default none.
   */
  readonly forwardHeaders?: { readonly http?: string; readonly grpc?: string }
  /**
   * Paths of one's own, beside the protocol's, over HTTP: each takes one sample of a model as plain JSON and answers so; one
   * that streams, with server-sent events. `GET /openapi.json` tells of them. Default none.
   *
   * ```ts
   * routes: { "POST /sentiment": Sentiment } // curl -d '{"TEXT":"great"}' localhost:8000/sentiment
   * ```
   */
  readonly routes?: ModelRoutes
  /** What answers only to calls with a secret header. Default nothing. */
  readonly restrictedApis?: { readonly http?: ReadonlyArray<Restriction>; readonly grpc?: ReadonlyArray<Restriction> }
  /** Whether callers may have tensors read from and written to shared memory of this machine. Default false. */
  readonly allowClientSharedMemory?: boolean
  /**
   * What the server's own log has, where it goes and how it looks; may be changed while the server runs. Without effect
   * inside `Logging.layer`, which has its own. Default: information, warnings and errors, to stderr, in Triton's format.
   */
  readonly logging?: Logging.LoggingOptions
  /**
   * Which requests are traced, into which file; all but the file may be changed while the server runs. Default: none, and
   * without a file none ever.
   */
  readonly trace?: Partial<TraceSettings>
  /**
   * Whether to tune V8's garbage collector for a server: V8 counts buffers together with its heap, collects young objects more
   * often, and no longer guesses which objects live long. Requests with large tensors then cost a fraction of their collections,
   * and small gRPC requests an eighth less CPU; up to some tens of megabytes more wait for a collection. The V8 flags hold for
   * the whole process until it ends, worker threads included. So turn it on where serving is what the process is for, and leave
   * it off in a process that does other work, too. `nereid serve` turns it on. Default false.
   */
  readonly tuneGarbageCollector?: boolean
  /** Whether the server is ready only while all its models are; else while it serves at all. Default true. */
  readonly strictReadiness?: boolean
  /** How long a stop waits for requests in flight. Default 30 seconds. */
  readonly drainTimeout?: Duration.Input
  /** Called where a stop goes on without requests that were still in flight after that; the log says so, too. Default: nothing. */
  readonly onDrainTimeout?: () => void
  /**
   * What becomes of a server of which a model has failed unrecoverably (`Errors.Unrecoverable`): called once, when readiness
   * is off, it has to close what holds the server. Default: it ends the process as SIGTERM does, with exit code 1. A server
   * of `Server.start` stops in any case.
   */
  readonly onUnrecoverable?: (error: Unrecoverable) => void
}
