/** Options of `Server.layer` and `Server.start`. The flags of `nereid serve` are in cli/src/flags. */
import type { Duration } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import type { Restriction } from "./gateway/RestrictedApis.ts"
import type { ResponseCompression } from "./grpc/ResponseCompression.ts"
import type { Keepalive } from "./grpc/Keepalive.ts"
import type { HandOver } from "./HandOver.ts"
import type { Dashboard } from "./http/HttpDashboard.ts"
import type { ModelRoutes } from "./http/HttpModelRoutes.ts"
import type * as Logging from "./log/Logging.ts"
import type { MetricsOptions } from "./metrics/PrometheusMetrics.ts"
import type * as Cors from "./port/Cors.ts"
import type { Tls } from "./port/Tls.ts"
import type { TraceSettings } from "./trace/TraceSettings.ts"

/**
 * Address to listen on: a port on all addresses, a host and a port, or false to turn the listener off. Port 0 picks a
 * free port.
 */
export type Listen = number | false | { readonly host: string; readonly port: number }

/** Options of a server. All are optional. */
export interface ServerOptions {
  /** Address of the HTTP listener. Default: port 8000. */
  readonly http?: Listen
  /** Address of the listener for gRPC, Connect and gRPC-Web. Default: port 8001. */
  readonly grpc?: Listen
  /**
   * Address of a listener that serves `http` and `grpc` together, over HTTP/1.1 and HTTP/2. An `http` or `grpc` with
   * the same port opens no separate listener. Default false.
   */
  readonly port?: Listen
  /** Address of the listener for Prometheus' `/metrics`. Default: port 8002. */
  readonly metrics?: Listen
  /** Optional metrics of `/metrics`: latency counters and summaries, and metrics of the machine. */
  readonly metricsOptions?: MetricsOptions
  /** TLS certificates of each listener, read from files. A listener without one serves plaintext. Default: none. */
  readonly tls?: { readonly http?: Tls; readonly grpc?: Tls; readonly port?: Tls }
  /** Cross-origin requests that browsers may send, on all ports except the metrics port. Default: none. */
  readonly cors?: Cors.Cors
  /**
   * Names of the server that are not private, such as `models.example.com` and `*.example.com`, or "*" for any. All
   * APIs but health then refuse other hosts over HTTP/1.1 without TLS. Default: the APIs that change the server accept
   * only names of this machine and of private networks, addresses, and the hosts of `cors`; the others accept any host.
   */
  readonly allowedHosts?: "*" | ReadonlyArray<string>
  /** Server name in the server's metadata. Default "nereid". */
  readonly id?: string
  /** Maximum size of an HTTP body, in bytes. Default 64 MiB. */
  readonly maxInputSize?: number
  /** Maximum size of a gRPC message, in bytes. Default 256 MiB, at most 2 GiB - 1. */
  readonly maxMessageSize?: number
  /** Compression of gRPC inference responses, for clients that accept gzip, deflate or brotli. Default "none". */
  readonly responseCompression?: ResponseCompression
  /** Keepalive of gRPC connections: pings, limits on the client's pings, and maximum age. Defaults as in gRPC. */
  readonly keepalive?: Keepalive
  /**
   * Maximum memory that callers make the server hold, in bytes: incomplete and complete requests, and responses that
   * have not been sent. Above half of it, each connection has a fair share. Default: half of the memory that the
   * process may use.
   */
  readonly maxInFlightSize?: number
  /** Maximum open connections of each port. Further connections are closed at once. Default 10,000. */
  readonly maxConnections?: number
  /**
   * Age from which the next response of an HTTP/1.1 connection closes it, varied by 10 % so that connections do not end
   * together. Clients then connect again, perhaps to another server. `keepalive` has the age of HTTP/2 connections.
   * Default: no limit.
   */
  readonly maxHttpConnectionAge?: Duration.Input
  /** Maximum time without progress while a client reads a response; its connection or call then ends. Default 60 s. */
  readonly sendTimeout?: Duration.Input
  /** Handles gRPC inference, unary and streaming, before Connect. Default true; false is for comparison. */
  readonly fastInference?: boolean
  /**
   * Implementation of HTTP/2: "own" for Nereid's, "node" for node:http2, which costs more per call. Default "own",
   * unless the environment variable NEREID_HTTP2 is "node".
   */
  readonly http2?: "node" | "own"
  /**
   * HTTP headers and gRPC metadata that are forwarded as request parameters. Each value is a regular expression that
   * matches any part of a name. Matching ignores case unless the expression starts with `(?-i)`. Default: none.
   */
  readonly forwardHeaders?: { readonly http?: string; readonly grpc?: string }
  /**
   * Additional HTTP routes. A route takes one sample of a model as plain JSON and responds with plain JSON, or with
   * server-sent events for a streaming model. Default: none.
   *
   * ```ts
   * routes: { "POST /sentiment": Sentiment } // curl -d '{"TEXT":"great"}' localhost:8000/sentiment
   * ```
   */
  readonly routes?: ModelRoutes
  /**
   * Serves a page on the HTTP port: the models, their load, and requests to try. True: at `/`; the option `path` is
   * another path. The page has no rights of its own; it sends requests like any client. Default false; `nereid serve`
   * turns it on.
   */
  readonly dashboard?: Dashboard
  /** APIs that require a secret header. Default: none. */
  readonly restrictedApis?: { readonly http?: ReadonlyArray<Restriction>; readonly grpc?: ReadonlyArray<Restriction> }
  /** Allows clients to register shared memory of this machine for input and output tensors. Default false. */
  readonly allowClientSharedMemory?: boolean
  /**
   * Content, destination and format of the server's log. All but the file can be changed while the server runs. Ignored
   * inside `Logging.layer`. Default: information, warnings and errors, to stderr, in Triton's format.
   */
  readonly logging?: Logging.LoggingOptions
  /**
   * Selects the requests to trace, and the trace file. All but the file can be changed while the server runs. Default:
   * no tracing. Without a file, tracing cannot be turned on.
   */
  readonly trace?: Partial<TraceSettings>
  /**
   * Prints to stdout what the server serves once it is ready, with an example request for each model, and later why and
   * how it stops; also to the log if that is a file, without the examples. Default false: the server writes nothing but
   * its log.
   */
  readonly announce?: boolean
  /**
   * Tunes V8's garbage collector for a server. V8 then counts buffers together with its heap, collects young objects
   * more often, and does not predict which objects live long. Requests with large tensors cost fewer collections, and
   * small gRPC requests an eighth less CPU. Uncollected memory grows by up to some tens of megabytes.
   *
   * The V8 flags apply to the whole process until it ends, including worker threads. Leave the option off in a process
   * that also does other work. `nereid serve` turns it on. Default false.
   */
  readonly tuneGarbageCollector?: boolean
  /**
   * Requires all models to be ready before the server reports ready. With false, a running server is ready. Default
   * true.
   */
  readonly strictReadiness?: boolean
  /**
   * Another server that takes the live sequences of this one at a stop, by the import route of its HTTP port. Sequences
   * that it does not take are waited for, as without this option. Default: none.
   */
  readonly handOverSequences?: HandOver
  /**
   * Time between the turning off of readiness and a stop, for load balancers to notice. The server still accepts
   * connections and answers requests. It asks clients to leave: with GOAWAY on the open HTTP/2 connections, and with
   * `Connection: close` in responses over HTTP/1.1. Default 0.
   */
  readonly drainDelay?: Duration.Input
  /** Maximum time that a stop waits for requests in flight, after `drainDelay`. Default 30 seconds. */
  readonly drainTimeout?: Duration.Input
  /** Called if requests are still in flight after `drainTimeout`; the server also logs it. Default: no callback. */
  readonly onDrainTimeout?: () => void
  /**
   * Called once after a model fails with `Errors.Unrecoverable`, when readiness is off. The callback must close the
   * scope that holds the server; a server of `Server.start` stops in any case. Default: end the process as SIGTERM
   * does, with exit code 1.
   */
  readonly onUnrecoverable?: (error: Unrecoverable) => void
}
