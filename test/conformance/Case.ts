/** The types of conformance cases. The tests in this directory run them. */
import { create, type DescMessage, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import type { Tag } from "@nereid/core/Errors"
import type { Line } from "./Acceptance.ts"
import type { GrpcCall } from "./GrpcConnection.ts"
import { frame } from "./GrpcEncoding.ts"
import type { HttpRequest } from "./HttpEncoding.ts"
import type { Encoding, InferRequest, Outcome } from "./InferRequest.ts"
import type { RepositoryLineName } from "./RepositoryLines.ts"
import type { Ports, ServerName } from "./ServerUnderTest.ts"

/** Claim that a case may prove. */
export type Claim = Line | RepositoryLineName

interface Named {
  /** As a sentence about the server. */
  readonly name: string
  readonly proves?: ReadonlyArray<Claim>
  /** Which server; default the normal one. */
  readonly server?: ServerName
}

/** One request, in every encoding that it has. */
export interface InferCase extends Named {
  readonly request: InferRequest
  readonly expected: Outcome
  /** Default all that can say it. */
  readonly as?: ReadonlyArray<Encoding>
}

export interface HttpExpected {
  readonly status: number
  /** The value of a header; undefined for a header that must be absent. */
  readonly headers?: { readonly [name: string]: string | RegExp | undefined }
  /** The whole body as text, or what it must look like. */
  readonly body?: string | RegExp
  /** Subset that the JSON body must contain. */
  readonly shows?: unknown
  /** The text of `{"error": …}`, instead of a body. */
  readonly error?: string | RegExp
  /** Which is announced beside it. */
  readonly tag?: Tag
}

/** Requests that only HTTP has, one after another on one connection, which then must still work. */
export interface HttpCase extends Named {
  readonly steps: ReadonlyArray<readonly [HttpRequest | string | Uint8Array, HttpExpected]>
  /** Which port; default `http`. */
  readonly port?: keyof Ports
  /** The server ends the connection behind the last answer. */
  readonly closes?: boolean
}

export interface GrpcExpected {
  readonly code: number
  readonly message?: string | RegExp
  readonly tag?: Tag
  /** Default 200. */
  readonly httpStatus?: number
  /** Each message of the answer as JSON. */
  readonly replies?: ReadonlyArray<string | RegExp>
  /** Subset that the only message must contain, as JSON with the protocol's names, default values included. */
  readonly shows?: unknown
  readonly headers?: { readonly [name: string]: string | RegExp | undefined }
}

/** A call that only gRPC has. */
export interface GrpcCase extends Named {
  readonly call: GrpcCall
  readonly expected: GrpcExpected
  /** Message type of the response. Default ModelInferResponse. */
  readonly output?: DescMessage
}

/** An RPC with one message, and what it answers. */
export const rpc = <I extends DescMessage, O extends DescMessage>(
  name: string,
  method: DescMethod & { readonly input: I; readonly output: O },
  request: MessageInitShape<I>,
  expected: GrpcExpected,
  more: Omit<GrpcCase, "name" | "call" | "expected"> = {},
): GrpcCase => ({
  name: `${method.name}: ${name}`,
  call: {
    method: `/${method.parent.typeName}/${method.name}`,
    chunks: [frame(toBinary(method.input, create(method.input, request)))],
  },
  expected,
  output: method.output,
  ...more,
})

export const http = (
  name: string,
  request: HttpRequest | string | Uint8Array,
  expected: HttpExpected,
  more: Omit<HttpCase, "name" | "steps"> = {},
): HttpCase => ({ name, steps: [[request, expected]], ...more })
