/** The loads that are measured beside other servers, each by several numbers of callers. */
import type { OtherKind } from "./OtherServer.ts"
import * as Request from "./Request.ts"
import * as RequestLoad from "./RequestLoad.ts"

export interface BesideLoad {
  readonly name: string
  readonly description: string
  /** The model that answers. */
  readonly model: string
  readonly needs: "gRPC" | "binary" | "JSON"
  readonly of: (callers: number) => RequestLoad.RequestLoad
}

export const callers = [1, 16, 64, 256] as const

/** The texts of numbers differ in length, since a batch may change the last digit of a result. */
const anyLength = (request: Request.Request) => (count: number) => RequestLoad.http(request, count, [request])

export const loads: ReadonlyArray<BesideLoad> = [
  {
    name: "add-sub-grpc",
    description: "add_sub, gRPC",
    model: "add_sub",
    needs: "gRPC",
    of: (count) => RequestLoad.unary("add_sub", count),
  },
  {
    name: "digits-grpc",
    description: "digits, gRPC",
    model: "digits",
    needs: "gRPC",
    of: (count) => RequestLoad.unary("digits", count),
  },
  {
    name: "digits-json",
    description: "digits, JSON",
    model: "digits",
    needs: "JSON",
    of: anyLength(Request.json("digits")),
  },
  {
    name: "digits-binary",
    description: "digits, binary over HTTP",
    model: "digits",
    needs: "binary",
    of: (count) => RequestLoad.http(Request.binary("digits"), count),
  },
  {
    name: "pipeline-json",
    description: "text pipeline, JSON",
    model: "sentiment",
    needs: "JSON",
    of: RequestLoad.texts,
  },
  {
    name: "picture-binary",
    description: "FP32[1,3,224,224] in, binary over HTTP",
    model: "glance",
    needs: "binary",
    of: (count) => RequestLoad.http(Request.binary("glance"), count),
  },
  {
    name: "picture-grpc",
    description: "FP32[1,3,224,224] in, gRPC",
    model: "glance",
    needs: "gRPC",
    of: (count) => RequestLoad.unary("glance", count),
  },
]

/** Whether the server speaks the protocol of the load. */
export const isSpoken = ({ needs }: BesideLoad, { speaksGrpc, speaksBinary }: OtherKind): boolean =>
  needs === "JSON" || (needs === "gRPC" ? speaksGrpc : speaksBinary)
