/**
 * /generate and /generate_stream: flat JSON requests and responses, one response or several, and the position of
 * errors. HTTP only.
 */
import type { Line } from "../Acceptance.ts"
import { type HttpCase, type HttpExpected, http } from "../Case.ts"
import { noWayDown } from "../Models.ts"

const json = { "content-type": "application/json" } as const
const events = { "content-type": "text/event-stream; charset=utf-8" } as const

const once = (name: string, model: string, body: string, expected: HttpExpected, line: Line = "C30"): HttpCase =>
  http(`generate: ${name}`, { path: `/v2/models/${model}/generate`, body }, expected, { proves: [line] })

const stream = (name: string, model: string, body: string, expected: HttpExpected): HttpCase =>
  http(`generate_stream: ${name}`, { path: `/v2/models/${model}/generate_stream`, body }, expected, { proves: ["C31"] })

const responded = (model: string, members: string): HttpExpected => ({
  status: 200,
  headers: json,
  body: `{"model_name":"${model}","model_version":"1",${members}}`,
})

const invalid = (error: string | RegExp): HttpExpected => ({ status: 400, error, tag: "InvalidRequest" })

const mapping: ReadonlyArray<HttpCase> = [
  once("a text", "text", '{"TEXT":"größer"}', responded("text", '"TEXT":"größer"')),
  once("a text in an array", "text", '{"TEXT":["a"]}', responded("text", '"TEXT":"a"')),
  once("one number", "single_int32", '{"X":5}', responded("single_int32", '"X":5')),
  once("one number in an array", "single_int32", '{"X":[5]}', responded("single_int32", '"X":5')),
  once("some numbers", "single_int32", '{"X":[1,2,3]}', responded("single_int32", '"X":[1,2,3]')),
  once("no numbers", "single_int32", '{"X":[]}', responded("single_int32", '"X":[]')),
  once(
    "all digits of 64 bits",
    "single_int64",
    '{"X":[9223372036854775807,-9223372036854775808]}',
    responded("single_int64", '"X":[9223372036854775807,-9223372036854775808]'),
  ),
  once(
    "NaN and infinities",
    "single_fp32",
    '{"X":[NaN,Infinity,-Infinity]}',
    responded("single_fp32", '"X":[NaN,Infinity,-Infinity]'),
  ),
  once("arrays in arrays", "matrix", '{"X":[[1,2],[3,4]]}', responded("matrix", '"X":[1,2,3,4]')),
  once("a batch of one", "batched_fp32", '{"X":[1,2]}', responded("batched_fp32", '"X":[1,2]')),
  once("a batch", "text", '{"TEXT":["a","b"]}', responded("text", '"TEXT":["a","b"]')),
  once(
    "several inputs",
    "simple",
    `{"INPUT0":[${Array.from({ length: 16 }, () => 2).join()}],"INPUT1":[${Array.from({ length: 16 }, () => 1).join()}]}`,
    responded(
      "simple",
      `"OUTPUT0":[${Array.from({ length: 16 }, () => 3).join()}],"OUTPUT1":[${Array.from({ length: 16 }, () => 1).join()}]`,
    ),
  ),
  once("an id", "text", '{"id":"7","TEXT":"a"}', {
    status: 200,
    body: '{"id":"7","model_name":"text","model_version":"1","TEXT":"a"}',
  }),
  once(
    "other keys are parameters, also inside of parameters; a model's own come back",
    "asked",
    '{"X":1,"p":true,"parameters":{"q":-1,"r":"x","s":0.5}}',
    {
      status: 200,
      body: /"PARAMETERS":"id: ; p: boolean true; q: bigint -1; r: string x; s: number 0\.5","flag":true,"count":4611686018427387904,"share":0\.5,"text":"größe"\}$/,
    },
  ),
]

const refused: ReadonlyArray<HttpCase> = [
  once(
    "parameters that are no object",
    "text",
    '{"TEXT":"a","parameters":1}',
    invalid("Expected JSON object for keyword: 'parameters'"),
  ),
  once(
    "an object inside of parameters",
    "text",
    '{"TEXT":"a","parameters":{"nested":{}}}',
    invalid(/^Converting keyword: 'parameters': parameter 'nested' has invalid type\./),
  ),
  once(
    "an object as a parameter",
    "text",
    '{"TEXT":"a","nested":{}}',
    invalid(/^parameter 'nested' has invalid type\./),
  ),
  once(
    "an input twice",
    "text",
    '{"TEXT":"a","TEXT":"b"}',
    invalid("[request id: <id_unknown>] input 'TEXT' already exists in request"),
  ),
  once(
    "a shape that the model has not",
    "matrix",
    '{"X":[[1,2],[3]]}',
    invalid("The schema can not convert input 'X' to tensor with proper shape"),
  ),
  once(
    "a text too few",
    "pair",
    '{"X":["a"]}',
    invalid("The schema can not convert input 'X' to tensor with proper shape"),
  ),
  once("FP16", "single_fp16", '{"X":[1]}', invalid(/^receiving FP16 data via JSON is not supported/)),
  once(
    "no input",
    "text",
    "{}",
    invalid(/^\[request id: <id_unknown>\] expected 1 inputs but got 0 inputs for model 'text'/),
  ),
  once("a reserved parameter", "text", '{"TEXT":"a","triton_x":1}', invalid(/reserved/)),
  once(
    "no JSON",
    "text",
    "{",
    { status: 400, error: /^failed to parse the request JSON buffer/, tag: "MalformedRequest" },
    "C15",
  ),
  once("no object", "text", "[]", { status: 400, error: /^Unable to parse/, tag: "MalformedRequest" }, "C15"),
  once(
    "an element of another kind",
    "single_int32",
    '{"X":["a"]}',
    { status: 400, error: /^Unable to parse/, tag: "MalformedRequest" },
    "C15",
  ),
  once(
    "a model that is not there",
    "no",
    "{",
    { status: 404, error: "Request for unknown model: 'no' is not found", tag: "ModelNotFound" },
    "C16",
  ),
  http(
    "generate: a compressed body",
    { path: "/v2/models/text/generate", headers: { "Content-Encoding": "gzip" }, body: "x" },
    invalid("Unsupported content-encoding, only 'identity' is supported."),
    { proves: ["C30"] },
  ),
  http(
    "generate: GET",
    { path: "/v2/models/text/generate" },
    { status: 405, error: "Method Not Allowed" },
    { proves: ["C5"] },
  ),
]

const exactlyOne: HttpExpected = {
  status: 501,
  error:
    "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses",
}

const responses: ReadonlyArray<HttpCase> = [
  once("one response of a decoupled model", "counts", '{"X":1}', responded("counts", '"Y":1')),
  once("three responses", "counts", '{"X":3}', exactlyOne),
  once("no response", "counts", '{"X":0}', exactlyOne),
  once("a failure of the model", "fail", '{"TAG":"QueueFull"}', { status: 503, tag: "QueueFull" }, "C5"),
]

const event = (x: number) => `data: {"model_name":"counts","model_version":"1","Y":${x}}\n\n`

const streams: ReadonlyArray<HttpCase> = [
  stream("three responses", "counts", '{"X":3}', { status: 200, headers: events, body: [1, 2, 3].map(event).join("") }),
  stream("no response", "counts", '{"X":0}', { status: 200, headers: events, body: "" }),
  stream("a model that answers once", "single_int32", '{"X":[1,2]}', {
    status: 200,
    headers: events,
    body: 'data: {"model_name":"single_int32","model_version":"1","X":[1,2]}\n\n',
  }),
  stream("an id in every response", "counts", '{"id":"7","X":2}', {
    status: 200,
    body: /^data: \{"id":"7",[^\n]*\n\ndata: \{"id":"7",[^\n]*\n\n$/,
  }),
  stream("a failure behind two responses stands in the stream", "counts", '{"X":-2}', {
    status: 200,
    headers: events,
    body: `${event(1)}${event(2)}data: {"error":"${noWayDown}"}\n\n`,
  }),
  stream("a failure instead of a response has its status", "fail", '{"TAG":"QueueFull"}', {
    status: 503,
    headers: events,
    body: /^data: \{"error":"the model's own text[^\n]*"\}\n\n$/,
  }),
  stream("what is refused before the model has it is no stream", "counts", '{"X":"a"}', {
    status: 400,
    headers: json,
    error: /^Unable to parse/,
  }),
  stream("an input too few", "counts", "{}", invalid(/expected 1 inputs but got 0 inputs/)),
  stream("a model that is not there", "no", "{}", {
    status: 404,
    error: "Request for unknown model: 'no' is not found",
  }),
]

export const generate: ReadonlyArray<HttpCase> = [...mapping, ...refused, ...responses, ...streams]
