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

const ask = (
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

const answered: GrpcExpected = { code: 0, replies: [/"modelName":"single_fp32"/] }

const bytes = Array.from(whole, (byte) => Uint8Array.of(byte))

/** What is wrong in itself is Connect's to word, where it gets there; so these are for the way before it. */
const alone = { server: "normal" } as const

const framing: ReadonlyArray<GrpcCase> = [
  ask("a message byte by byte", { chunks: bytes }, answered),
  ask("no message", { chunks: [] }, { code: GrpcCode.UNIMPLEMENTED }),
  ...[1, 4, 5, whole.length - 1].map((length) =>
    ask(
      `${length} bytes of a message`,
      { chunks: [whole.subarray(0, length)] },
      { code: GrpcCode.INVALID_ARGUMENT },
      "C22",
      alone,
    ),
  ),
  ask("two messages", { chunks: [whole, whole] }, { code: GrpcCode.UNIMPLEMENTED }),
  ask(
    "a byte behind the message",
    { chunks: [whole, Uint8Array.of(0)] },
    { code: GrpcCode.UNIMPLEMENTED },
    "C22",
    alone,
  ),
  ask(
    "an empty message",
    { chunks: [frame(new Uint8Array())] },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: '' is not found" },
  ),
  ask("a compressed message that no header announces", { chunks: [frame(message(), 1)] }, { code: GrpcCode.INTERNAL }),
  ask("a flag that is none", { chunks: [frame(message(), 2)] }, { code: GrpcCode.INTERNAL }, "C22", alone),
  ask(
    "bytes that are no message",
    { chunks: [frame(Uint8Array.of(0xff, 0xff, 0xff))] },
    { code: GrpcCode.INVALID_ARGUMENT, message: /^failed to parse ModelInferRequest/, tag: "InvalidRequest" },
    "C22",
    alone,
  ),
  ask(
    "a length inside the message that points beyond it",
    { chunks: [frame(Uint8Array.of(0x0a, 0x7f, 0x61))] },
    { code: GrpcCode.INVALID_ARGUMENT, message: /^failed to parse ModelInferRequest/ },
    "C22",
    alone,
  ),
]

const compressed: ReadonlyArray<GrpcCase> = [
  ask(
    "a message in gzip",
    { chunks: [frame(gzipSync(message()), 1)], headers: { "grpc-encoding": "gzip" } },
    answered,
    "C29",
  ),
  ask(
    "a plain message where gzip is announced",
    { chunks: [whole], headers: { "grpc-encoding": "gzip" } },
    answered,
    "C29",
  ),
  ask(
    "a plain message where identity is announced",
    { chunks: [whole], headers: { "grpc-encoding": "identity" } },
    answered,
    "C29",
  ),
  ask(
    "an encoding that nobody knows",
    { chunks: [frame(message(), 1)], headers: { "grpc-encoding": "snappy" } },
    { code: GrpcCode.UNIMPLEMENTED },
    "C29",
  ),
]

const headers: ReadonlyArray<GrpcCase> = [
  ...["application/grpc+proto", "application/grpc"].map((type) =>
    ask(`content-type ${type}`, { chunks: [whole], headers: { "content-type": type } }, answered),
  ),
  ...["x", "", "1", "-1S", "123456789S", "1.5S"].map((timeout) =>
    ask(
      `a timeout of ${JSON.stringify(timeout)}`,
      { chunks: [whole], headers: { "grpc-timeout": timeout } },
      { code: GrpcCode.INVALID_ARGUMENT },
      "C28",
    ),
  ),
  ...["10S", "99999999H", "1000m"].map((timeout) =>
    ask(`a timeout of ${timeout}`, { chunks: [whole], headers: { "grpc-timeout": timeout } }, answered, "C28"),
  ),
  ...["1n", "0S"].map((timeout) =>
    ask(
      `a timeout of ${timeout}`,
      { chunks: [whole], headers: { "grpc-timeout": timeout } },
      { code: GrpcCode.DEADLINE_EXCEEDED },
      "C28",
    ),
  ),
  ...["ModelInfer2", "modelInfer", "/inference.Other/ModelInfer", "/"].map((method) =>
    ask(`the method ${method}`, { method, chunks: [whole] }, { code: GrpcCode.UNIMPLEMENTED, tag: "Unsupported" }),
  ),
]

const large = frame(message(2 * 2 ** 20))

/** Ids of two lengths cost different prefixes, so its length is taken from one that is nearly right. */
const exact = message(2, "x".repeat(1900 + smallLimit - message(2, "x".repeat(1900)).length))

const sizes: ReadonlyArray<GrpcCase> = [
  ask("8 MiB both ways", { chunks: [large] }, { code: 0 }, "C24"),
  ask(
    "8 MiB in parts of 64 KiB",
    {
      chunks: Array.from({ length: Math.ceil(large.length / 65536) }, (_, index) =>
        large.subarray(index * 65536, (index + 1) * 65536),
      ),
    },
    { code: 0 },
    "C24",
  ),
  ask("a message of exactly the limit", { chunks: [frame(exact)] }, answered, "C24", { server: "small" }),
  ask(
    "a message beyond the limit",
    { chunks: [frame(new Uint8Array(smallLimit + 1))] },
    { code: GrpcCode.RESOURCE_EXHAUSTED, message: /2049.*2048/ },
    "C24",
    { server: "small" },
  ),
  ask(
    "a message of 4 GiB, announced",
    { chunks: [Uint8Array.of(0, 255, 255, 255, 255, 1, 2, 3)] },
    { code: GrpcCode.RESOURCE_EXHAUSTED },
    "C24",
  ),
]

export const grpcFrames: ReadonlyArray<GrpcCase> = [...framing, ...compressed, ...headers, ...sizes]
