/** HTTP below the protocol: content types, compression, limits, chunks, and connections that go on after an error. */
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib"
import type { Line } from "../Acceptance.ts"
import { type HttpCase, type HttpExpected, http } from "../Case.ts"
import { smallLimit } from "../ServerUnderTest.ts"

const path = "/v2/models/single_fp32/infer"
const body = '{"inputs":[{"name":"X","datatype":"FP32","shape":[2],"data":[1,2]}]}'
const response =
  '{"model_name":"single_fp32","model_version":"1","outputs":[{"name":"X","datatype":"FP32","shape":[2],"data":[1,2]}]}'

const httpCase = (
  name: string,
  line: Line,
  headers: { readonly [name: string]: string },
  content: string | Uint8Array,
  expected: HttpExpected,
  more: Pick<HttpCase, "server" | "closes"> = {},
): HttpCase => http(name, { path, headers, body: content }, expected, { proves: [line], ...more })

const types = [
  "",
  "application/json",
  "application/octet-stream",
  "application/x-www-form-urlencoded",
  "text/plain; charset=x",
  "nonsense",
].map((type) =>
  httpCase(`Content-Type: ${type}`, "C6", { "Content-Type": type }, body, {
    status: 200,
    headers: { "content-type": "application/json" },
    body: response,
  }),
)

const compressed: ReadonlyArray<HttpCase> = [
  httpCase("a gzip body", "C13", { "Content-Encoding": "gzip" }, gzipSync(body), { status: 200, body: response }),
  httpCase("a deflate body", "C13", { "Content-Encoding": "deflate" }, deflateSync(body), {
    status: 200,
    body: response,
  }),
  ...["identity", "", "Identity", " "].map((encoding) =>
    httpCase(`Content-Encoding: ${JSON.stringify(encoding)}`, "C13", { "Content-Encoding": encoding }, body, {
      status: 200,
      body: response,
    }),
  ),
  ...["br", "compress", "zstd", "gzip, deflate", "x", "gzip;q=1"].map((encoding) =>
    httpCase(`Content-Encoding: ${encoding}`, "C13", { "Content-Encoding": encoding }, body, {
      status: 415,
      error: "Unsupported compression type",
      headers: { "accept-encoding": "gzip, deflate" },
    }),
  ),
  ...["gzip", "deflate"].flatMap((encoding) => [
    httpCase(`invalid ${encoding}`, "C13", { "Content-Encoding": encoding }, body, {
      status: 400,
      error: /^failed to decompress/,
      tag: "InvalidRequest",
    }),
    httpCase(
      `${encoding} cut off`,
      "C13",
      { "Content-Encoding": encoding },
      (encoding === "gzip" ? gzipSync(body) : deflateSync(body)).subarray(0, 20),
      {
        status: 400,
        error: /^failed to decompress/,
        tag: "InvalidRequest",
      },
    ),
    httpCase(
      `${encoding} of nothing`,
      "C13",
      { "Content-Encoding": encoding },
      encoding === "gzip" ? gzipSync("") : deflateSync(""),
      {
        status: 400,
        error: /^failed to parse the request JSON buffer: The document is empty/,
      },
    ),
  ]),
  httpCase("deflate without its wrapper", "C13", { "Content-Encoding": "deflate" }, deflateRawSync(body), {
    status: 400,
    error: /^failed to decompress/,
  }),
  ...[
    ["gzip", "gzip"],
    ["deflate", "deflate"],
    ["gzip;q=0.5, deflate", "deflate"],
    ["*", undefined],
    ["identity", undefined],
    ["br, zstd", undefined],
    ["gzip;q=0", undefined],
    ["", undefined],
    ["GZIP", "gzip"],
    ["gzip;q=x", undefined],
  ].map(([accepted = "", encoding]) =>
    httpCase(`Accept-Encoding: ${accepted}`, "C13", { "Accept-Encoding": accepted }, body, {
      status: 200,
      headers: { "content-encoding": encoding },
    }),
  ),
]

const large = `{"x":"${"a".repeat(smallLimit)}"}`
const tooLarge = (size: number): HttpExpected => ({
  status: 400,
  error: `request JSON size of ${size} bytes exceeds the maximum allowed input size of ${smallLimit} bytes. Use --http-max-input-size to increase the limit.`,
  tag: "InvalidRequest",
})

/** A body of exactly so many bytes. */
const padded = (length: number) => body.padEnd(length)

const limits: ReadonlyArray<HttpCase> = [
  httpCase("a body of exactly the limit", "C14", {}, padded(smallLimit), { status: 200 }, { server: "small" }),
  httpCase("a body of a byte more", "C14", {}, padded(smallLimit + 1), tooLarge(smallLimit + 1), {
    server: "small",
    closes: true,
  }),
  httpCase(
    "a body that is too large only when it is decompressed",
    "C14",
    { "Content-Encoding": "gzip" },
    gzipSync(large),
    {
      status: 400,
      error: `decompressed request size exceeds the maximum allowed value of ${smallLimit} bytes. Use --http-max-input-size to increase the limit.`,
      tag: "InvalidRequest",
    },
    { server: "small" },
  ),
  http(
    "a chunked body of more chunks than are read, of which more would follow",
    `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(70_000)}`,
    { status: 400, error: /^Chunked request body exceeds maximum of 65536 non-empty chunks/, tag: "InvalidRequest" },
    { closes: true },
  ),
  http(
    "a chunked body that is too large",
    `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${`400\r\n${"a".repeat(1024)}\r\n`.repeat(3)}0\r\n\r\n`,
    { status: 400, error: /^request JSON size of [0-9]+ bytes exceeds the maximum allowed input size of 2048 bytes/ },
    { proves: ["C14"], server: "small", closes: true },
  ),
  http(
    "64 MiB and a byte, announced, is too large by default",
    `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${64 * 2 ** 20 + 1}\r\n\r\n`,
    {
      status: 400,
      error: /^request JSON size of 67108865 bytes exceeds the maximum allowed input size of 67108864 bytes/,
    },
    { proves: ["C14"], closes: true },
  ),
]

const post = (headers: string, content: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${content}`

const framing: ReadonlyArray<HttpCase> = [
  http(
    "a body in chunks",
    post(
      "Transfer-Encoding: chunked",
      `10\r\n${body.slice(0, 16)}\r\n${(body.length - 16).toString(16)}\r\n${body.slice(16)}\r\n0\r\n\r\n`,
    ),
    {
      status: 200,
      body: response,
    },
    { proves: ["C7"] },
  ),
  http(
    "no length at all is no body",
    post("X: y", ""),
    { status: 400, error: /The document is empty/ },
    { proves: ["C15"] },
  ),
  http(
    "a body that the caller asks about first",
    post(`Expect: 100-continue\r\nContent-Length: ${body.length}`, body),
    { status: 200, body: response },
    { proves: ["C7"], closes: true },
  ),
  ...[
    ["a length that is no number", "Content-Length: x"],
    ["a negative length", "Content-Length: -1"],
    ["two lengths", "Content-Length: 1\r\nContent-Length: 2"],
    ["a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked"],
    ["a chunk whose length is no number", "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"],
    ["a header without a colon", "nonsense"],
    ["a header with a NUL", "X: a\u0000b"],
  ].map(([name = "", headers = ""]) =>
    http(name, post(headers, ""), { status: 400, error: /^malformed HTTP: / }, { proves: ["C5"], closes: true }),
  ),
  http(
    "no HTTP at all",
    "hello\r\n\r\n",
    { status: 400, error: /^malformed HTTP: / },
    { proves: ["C5"], closes: true },
  ),
  http(
    "another version of HTTP",
    "GET /v2 HTTP/3.0\r\n\r\n",
    { status: 400, error: /^malformed HTTP: / },
    { proves: ["C5"], closes: true },
  ),
  http(
    "headers of 100 KB",
    post(`X: ${"a".repeat(100_000)}`, ""),
    { status: 431, error: /headers/ },
    { proves: ["C5"], closes: true },
  ),
  http("a path of 10 KB", { path: `/v2/models/${"a".repeat(10_000)}` }, { status: 404 }, { proves: ["C16"] }),
]

const keepAliveCase: HttpCase = {
  name: "errors of all kinds, one after another on one connection",
  proves: ["C5", "C15"],
  steps: [
    [
      { path, body },
      { status: 200, body: response },
    ],
    [{ path, body: "{" }, { status: 400 }],
    [{ path: "/nowhere", body }, { status: 404 }],
    [{ method: "PUT", path, body }, { status: 405 }],
    [{ path, headers: { "Content-Encoding": "br" }, body }, { status: 415 }],
    [{ path, headers: { "Inference-Header-Content-Length": "x" }, body }, { status: 400 }],
    [{ path: "/v2/models/no/infer", body }, { status: 404 }],
    [
      {
        path: "/v2/models/fail/infer",
        body: '{"inputs":[{"name":"TAG","datatype":"BYTES","shape":[1],"data":["x"]}]}',
      },
      { status: 500 },
    ],
    [
      { path, body },
      { status: 200, body: response },
    ],
  ],
}

const deadlines: ReadonlyArray<HttpCase> = [
  ...["x", "-1", "", "1e3", "NaN"].map((timeout) =>
    httpCase(`a timeout of ${JSON.stringify(timeout)}`, "C28", { "Nereid-Timeout-Ms": timeout }, body, {
      status: 400,
      error: /^nereid-timeout-ms must be a number of milliseconds/,
    }),
  ),
  http(
    "a timeout that passes while the model runs",
    {
      path: "/v2/models/stuck/infer",
      headers: { "Nereid-Timeout-Ms": "20" },
      body: '{"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":[1]}]}',
    },
    { status: 503, error: "[request id: <id_unknown>] Deadline Exceeded", tag: "DeadlineExceeded" },
    { proves: ["C28"] },
  ),
]

export const transport: ReadonlyArray<HttpCase> = [
  ...types,
  ...compressed,
  ...limits,
  ...framing,
  keepAliveCase,
  ...deadlines,
]
