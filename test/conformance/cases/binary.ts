/** The binary extension over HTTP: the end of the document, the lengths of tensors, and responses. */
import type { Line } from "../Acceptance.ts"
import { type HttpCase, type HttpExpected, http } from "../Case.ts"

const floats = (...values: ReadonlyArray<number>) => Buffer.from(Float32Array.from(values).buffer)

const input = (size: number | string, shape = "[2]", more = "") =>
  `{"name":"X","datatype":"FP32","shape":${shape},"parameters":{"binary_data_size":${size}}${more}}`

const document = (inputs: string, more = "") => Buffer.from(`{${more}"inputs":[${inputs}]}`)

const httpCase = (
  name: string,
  document: Buffer,
  tail: Uint8Array,
  expected: HttpExpected,
  options: { readonly line?: Line; readonly length?: string; readonly model?: string } = {},
): HttpCase =>
  http(
    name,
    {
      path: `/v2/models/${options.model ?? "single_fp32"}/infer`,
      headers: { "Inference-Header-Content-Length": options.length ?? String(document.length) },
      body: Buffer.concat([document, tail]),
    },
    expected,
    { proves: [options.line ?? "C8"] },
  )

const invalid = (error: string | RegExp): HttpExpected => ({ status: 400, error, tag: "InvalidRequest" })

const two = document(input(8))
const tail = floats(1, 2)
const whole = two.length + tail.length

const lengths: ReadonlyArray<HttpCase> = [
  httpCase("binary in, JSON out", two, tail, {
    status: 200,
    headers: { "content-type": "application/json", "inference-header-content-length": undefined },
    body: '{"model_name":"single_fp32","model_version":"1","outputs":[{"name":"X","datatype":"FP32","shape":[2],"data":[1,2]}]}',
  }),
  ...["", "x", "1.5", "0x10", "2147483648", "-2147483649", "99999999999999999999", "NaN", "1 2"].map((length) =>
    httpCase(
      `a document of ${JSON.stringify(length)} bytes`,
      two,
      tail,
      invalid(/^Unable to parse Inference-Header-Content-Length, /),
      {
        length,
      },
    ),
  ),
  ...[-1, whole + 1, 2 ** 31 - 1].map((length) =>
    httpCase(
      `a document of ${length === whole + 1 ? "one byte more than there are" : length} bytes`,
      two,
      tail,
      invalid(`inference header size should be in range (0, ${whole}), got: ${length}`),
      { length: String(length) },
    ),
  ),
  httpCase(
    "a document cut off by its length",
    two,
    tail,
    { status: 400, error: /^failed to parse the request JSON buffer/ },
    {
      length: String(two.length - 1),
      line: "C15",
    },
  ),
  httpCase(
    "a document whose length reaches into the data",
    two,
    tail,
    { status: 400, error: /^failed to parse the request JSON buffer/ },
    {
      length: String(two.length + 1),
      line: "C15",
    },
  ),
  httpCase("a length with white space and a sign", two, tail, { status: 200 }, { length: ` +${two.length} ` }),
  httpCase(
    "a length that is the whole body",
    document('{"name":"X","datatype":"FP32","shape":[1],"data":[1]}'),
    Buffer.alloc(0),
    {
      status: 200,
    },
  ),
]

const blobs: ReadonlyArray<HttpCase> = [
  ...[0, 1, 7].map((length) =>
    httpCase(
      `${length} bytes of the 8 announced`,
      two,
      tail.subarray(0, length),
      invalid(`unexpected size for input 'X', expecting ${8 - length} additional bytes for model 'single_fp32'`),
    ),
  ),
  httpCase(
    "a byte more than announced",
    two,
    Buffer.concat([tail, Buffer.alloc(1)]),
    invalid("unexpected additional input data for model 'single_fp32'"),
  ),
  httpCase(
    "data that the document does not declare",
    document('{"name":"X","datatype":"FP32","shape":[1],"data":[1]}'),
    tail,
    invalid("unexpected additional input data for model 'single_fp32'"),
  ),
  ...[4, 12].map((size) =>
    httpCase(
      `${size} bytes announced and sent where 8 are needed`,
      document(input(size)),
      Buffer.alloc(size),
      invalid(
        `[request id: <id_unknown>] input byte size mismatch for input 'X' for model 'single_fp32'. Expected 8, got ${size}`,
      ),
      { line: "C18" },
    ),
  ),
  ...["-1", "1.5", '"8"', "true", "null", "{}"].map((size) =>
    httpCase(
      `a binary_data_size of ${size}`,
      document(input(size)),
      tail,
      { status: 400, error: /^Unable to parse 'binary_data_size'/, tag: "MalformedRequest" },
      {
        line: "C15",
      },
    ),
  ),
  httpCase(
    "a binary_data_size beyond any body",
    document(input("18446744073709551615")),
    tail,
    invalid(/^unexpected size for input 'X', expecting [0-9]+ additional bytes/),
  ),
  httpCase(
    "data and binary_data_size together",
    document(input(8, "[2]", ',"data":[1,2]')),
    tail,
    invalid(/^Input must set only one of the following fields: .*But .*'data'/),
  ),
  httpCase(
    "neither data nor binary_data_size",
    document('{"name":"X","datatype":"FP32","shape":[2]}'),
    Buffer.alloc(0),
    invalid(/^Input must set only one of the following fields: .*But no field is set$/),
  ),
]

const outputs: ReadonlyArray<HttpCase> = [
  httpCase(
    "all outputs in binary by the request's parameter",
    document(input(8), '"parameters":{"binary_data_output":true},'),
    tail,
    {
      status: 200,
      headers: { "content-type": "application/octet-stream", "inference-header-content-length": "139" },
      body: /^\{"model_name":"single_fp32","model_version":"1","outputs":\[\{"name":"X","datatype":"FP32","shape":\[2\],"parameters":\{"binary_data_size":8\}\}\]\}/,
    },
  ),
  httpCase(
    "an output in binary by its own parameter",
    document(input(8), '"outputs":[{"name":"X","parameters":{"binary_data":true}}],'),
    tail,
    {
      status: 200,
      headers: { "content-type": "application/octet-stream" },
    },
  ),
  httpCase(
    "an output's own parameter counts more than the request's",
    document(
      input(8),
      '"parameters":{"binary_data_output":true},"outputs":[{"name":"X","parameters":{"binary_data":false}}],',
    ),
    tail,
    {
      status: 200,
      headers: { "content-type": "application/json" },
      body: /"data":\[1,2\]/,
    },
  ),
  httpCase(
    "parameters that the binary extension uses up are not the model's",
    document(input(8), '"parameters":{"binary_data_output":false},'),
    tail,
    {
      status: 200,
      headers: { "content-type": "application/json" },
    },
  ),
]

const rawHeaders: ReadonlyArray<HttpCase> = [
  httpCase(
    "a raw body, length 0",
    Buffer.alloc(0),
    tail,
    { status: 200, headers: { "content-type": "application/octet-stream" } },
    { length: "0", line: "C9" },
  ),
  httpCase("a raw body, length +0 and -0", Buffer.alloc(0), tail, { status: 200 }, { length: "-0", line: "C9" }),
  httpCase(
    "a raw body for a model that is not there",
    Buffer.alloc(0),
    tail,
    { status: 404, error: "Request for unknown model: 'no' is not found", tag: "ModelNotFound" },
    { length: "0", model: "no", line: "C16" },
  ),
]

export const binary: ReadonlyArray<HttpCase> = [...lengths, ...blobs, ...outputs, ...rawHeaders]
