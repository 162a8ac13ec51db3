/** A request as a load: over which protocol, how many at a time, and what target that is of a server. */
import * as GrpcStream from "@nereid/bench/internal/grpc/GrpcStream"
import * as GrpcUnary from "@nereid/bench/internal/grpc/GrpcUnary"
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import * as HttpInfer from "@nereid/bench/internal/http1/HttpInfer"
import type { Target } from "@nereid/bench/internal/target/Load"
import type { Child } from "./Child.ts"
import * as NodeRequest from "./NodeRequest.ts"
import * as Request from "./Request.ts"

export interface RequestLoad {
  readonly protocol: "unary" | "stream" | "HTTP"
  readonly request: Request.Request
  /** Sent in turns with it, over HTTP; their replies may have any length. Default: none. */
  readonly others?: ReadonlyArray<Request.Request>
  readonly concurrency: number
  readonly connections: number
}

/** Callers over gRPC share connections, over HTTP each has its own. */
const shared = (concurrency: number): number => Math.min(4, concurrency)

export const unary = (model: Request.ModelName, concurrency: number): RequestLoad => ({
  protocol: "unary",
  request: Request.grpc(model),
  concurrency,
  connections: shared(concurrency),
})

/** One stream on each connection. */
export const stream = (model: Request.ModelName, concurrency: number): RequestLoad => ({
  protocol: "stream",
  request: Request.grpcStream(model, GrpcStream.idPlaceholder),
  concurrency,
  connections: shared(concurrency),
})

export const http = (
  request: Request.Request,
  concurrency: number,
  others: ReadonlyArray<Request.Request> = [],
): RequestLoad => ({
  protocol: "HTTP",
  request,
  others,
  concurrency,
  connections: concurrency,
})

/** Texts of several lengths, for the pipeline of examples/sentiment. */
export const texts = (concurrency: number): RequestLoad => http(text, concurrency, otherTexts)

const [text = Request.text(""), ...otherTexts] = [
  "a moving and important film .",
  "it never fails to engage us , and it never asks us to believe more than its characters do .",
  "too slow",
  "the acting , costumes , music , cinematography and sound are all astounding given the production 's austere locales .",
].map(Request.text)

/** Bytes of the answer's message or body, of one request ahead of the load, which says in full what a refusal was. */
export const replyLength = async (
  { ports }: Pick<Child, "ports">,
  { protocol, request }: RequestLoad,
): Promise<number> =>
  (protocol === "HTTP" ? await NodeRequest.http(ports.http, request) : await NodeRequest.grpc(ports.grpc, request))
    .length

export const target = (
  { ports }: Pick<Child, "ports">,
  { protocol, request, others = [] }: RequestLoad,
  replyLength: number | undefined,
): Target => {
  const host = "127.0.0.1"
  const { path, body } = request
  if (protocol === "HTTP") {
    const length = others.length === 0 ? replyLength : undefined
    const posted = (posted: Request.Request) => ({
      request: { method: "POST" as const, ...posted },
      replyLength: length,
    })
    return HttpInfer.target({ host, port: ports.http }, [posted(request), ...others.map(posted)])
  }
  const address = { host, port: ports.grpc }
  if (protocol === "unary") return GrpcUnary.target(address, { path, requests: [{ message: body, replyLength }] })
  return GrpcStream.target(address, {
    requests: [{ message: body, idOffset: body.indexOf(GrpcStream.idPlaceholder), replyLength }],
    decoupled: false,
    hasIds: true,
  })
}

/** The same for echo.ts, whose path says how many bytes come and how many go back. */
export const echoed = (load: RequestLoad, replyLength: number): RequestLoad => {
  const { protocol, request } = load
  const prefix = protocol === "HTTP" ? 0 : prefixLength
  const path = `/${prefix + request.body.length}/${prefix + replyLength}`
  return { ...load, request: { ...request, path } }
}
