/** gRPC below its messages: prefixes, lengths, headers, paths, large messages. */
import { gzipSync } from "node:zlib"
import { create, toBinary } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import type { Line } from "../Acceptance.ts"
import type { GrpcCase, GrpcExpected } from "../Case.ts"
import type { GrpcCall } from "../GrpcConnection.ts"
import { frame } from "../GrpcEncoding.ts"
import { smallLimit } from "../ServerUnderTest.ts"

const message = (elements = 2, parameter = "") =>
  toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: "single_fp32",
      // Not the id, which the answer repeats.
      ...(parameter === ""
        ? {}
        : { parameters: { own: { parameterChoice: { case: "stringParam", value: parameter } } } }),
      inputs: [{ name: "X", datatype: "FP32", shape: [BigInt(elements)] }],
      rawInputContents: [new Uint8Array(elements * 4)],
    }),
  )

const whole = frame(message())

const grpcCase = (
  name: string,
  call: GrpcCall,
  expected: GrpcExpected,
  line: Line = "C22",
  more: Pick<GrpcCase, "server"> = {},
): GrpcCase => ({
  name,
  proves: [line],
  call,
  expected,
  ...more,
})

const responded: GrpcExpected = { code: 0, replies: [/"modelName":"single_fp32"/] }

const bytes = Array.from(whole, (byte) => Uint8Array.of(byte))

/** Cases for the normal server only, as Connect words the errors of malformed frames itself. */
const normalServer = { server: "normal" } as const

const framing: ReadonlyArray<GrpcCase> = [
  grpcCase("a message byte by byte", { chunks: bytes }, responded),
  grpcCase("no message", { chunks: [] }, { code: GrpcCode.UNIMPLEMENTED }),
  ...[1, 4, 5, whole.length - 1].map((length) =>
    grpcCase(
      `${length} bytes of a message`,
      { chunks: [whole.subarray(0, length)] },
      { code: GrpcCode.INVALID_ARGUMENT },
      "C22",
      normalServer,
    ),
  ),
  grpcCase("two messages", { chunks: [whole, whole] }, { code: GrpcCode.UNIMPLEMENTED }),
  grpcCase(
    "a byte behind the message",
    { chunks: [whole, Uint8Array.of(0)] },
    { code: GrpcCode.UNIMPLEMENTED },
    "C22",
    normalServer,
  ),
  grpcCase(
    "an empty message",
    { chunks: [frame(new Uint8Array())] },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: '' is not found" },
  ),
  grpcCase(
    "a compressed message that no header announces",
    { chunks: [frame(message(), 1)] },
    { code: GrpcCode.INTERNAL },
  ),
  grpcCase("an invalid flag", { chunks: [frame(message(), 2)] }, { code: GrpcCode.INTERNAL }, "C22", normalServer),
  grpcCase(
    "bytes that are no message",
    { chunks: [frame(Uint8Array.of(0xff, 0xff, 0xff))] },
    { code: GrpcCode.INVALID_ARGUMENT, message: /^failed to parse ModelInferRequest/, tag: "InvalidRequest" },
    "C22",
    normalServer,
  ),
  grpcCase(
    "a length inside the message that points beyond it",
    { chunks: [frame(Uint8Array.of(0x0a, 0x7f, 0x61))] },
    { code: GrpcCode.INVALID_ARGUMENT, message: /^failed to parse ModelInferRequest/ },
    "C22",
    normalServer,
  ),
]

const compressed: ReadonlyArray<GrpcCase> = [
  grpcCase(
    "a message in gzip",
    { chunks: [frame(gzipSync(message()), 1)], headers: { "grpc-encoding": "gzip" } },
    responded,
    "C29",
  ),
  grpcCase(
    "a plain message where gzip is announced",
    { chunks: [whole], headers: { "grpc-encoding": "gzip" } },
    responded,
    "C29",
  ),
  grpcCase(
    "a plain message where identity is announced",
    { chunks: [whole], headers: { "grpc-encoding": "identity" } },
    responded,
    "C29",
  ),
  grpcCase(
    "an unknown encoding",
    { chunks: [frame(message(), 1)], headers: { "grpc-encoding": "snappy" } },
    { code: GrpcCode.UNIMPLEMENTED },
    "C29",
  ),
]

const headers: ReadonlyArray<GrpcCase> = [
  ...["application/grpc+proto", "application/grpc"].map((type) =>
    grpcCase(`content-type ${type}`, { chunks: [whole], headers: { "content-type": type } }, responded),
  ),
  ...["x", "", "1", "-1S", "123456789S", "1.5S"].map((timeout) =>
    grpcCase(
      `a timeout of ${JSON.stringify(timeout)}`,
      { chunks: [whole], headers: { "grpc-timeout": timeout } },
      { code: GrpcCode.INVALID_ARGUMENT },
      "C28",
    ),
  ),
  ...["10S", "99999999H", "1000m"].map((timeout) =>
    grpcCase(`a timeout of ${timeout}`, { chunks: [whole], headers: { "grpc-timeout": timeout } }, responded, "C28"),
  ),
  ...["1n", "0S"].map((timeout) =>
    grpcCase(
      `a timeout of ${timeout}`,
      { chunks: [whole], headers: { "grpc-timeout": timeout } },
      { code: GrpcCode.DEADLINE_EXCEEDED },
      "C28",
    ),
  ),
  ...["ModelInfer2", "modelInfer", "/inference.Other/ModelInfer", "/"].map((method) =>
    grpcCase(`the method ${method}`, { method, chunks: [whole] }, { code: GrpcCode.UNIMPLEMENTED, tag: "Unsupported" }),
  ),
]

const large = frame(message(2 * 2 ** 20))

/** Ids of two lengths cost different prefixes, so its length is taken from one that is nearly right. */
const exact = message(2, "x".repeat(1900 + smallLimit - message(2, "x".repeat(1900)).length))

const sizes: ReadonlyArray<GrpcCase> = [
  grpcCase("8 MiB both ways", { chunks: [large] }, { code: 0 }, "C24"),
  grpcCase(
    "8 MiB in parts of 64 KiB",
    {
      chunks: Array.from({ length: Math.ceil(large.length / 65536) }, (_, index) =>
        large.subarray(index * 65536, (index + 1) * 65536),
      ),
    },
    { code: 0 },
    "C24",
  ),
  grpcCase("a message of exactly the limit", { chunks: [frame(exact)] }, responded, "C24", { server: "small" }),
  grpcCase(
    "a message beyond the limit",
    { chunks: [frame(new Uint8Array(smallLimit + 1))] },
    {
      code: GrpcCode.RESOURCE_EXHAUSTED,
      message: `Received message larger than max (${smallLimit + 1} vs. ${smallLimit})`,
    },
    "C24",
    { server: "small" },
  ),
  grpcCase(
    "a message beyond the limit when it is decompressed",
    { chunks: [frame(gzipSync(new Uint8Array(2 ** 20)), 1)], headers: { "grpc-encoding": "gzip" } },
    {
      code: GrpcCode.RESOURCE_EXHAUSTED,
      message: `Received message larger than max (more than ${smallLimit} vs. ${smallLimit})`,
    },
    "C24",
    { server: "small" },
  ),
  grpcCase(
    "a message of 4 GiB, announced",
    { chunks: [Uint8Array.of(0, 255, 255, 255, 255, 1, 2, 3)] },
    { code: GrpcCode.RESOURCE_EXHAUSTED },
    "C24",
  ),
]

export const grpcFrames: ReadonlyArray<GrpcCase> = [...framing, ...compressed, ...headers, ...sizes]
