/** JSON bodies of inference that are wrong, odd or unusual: syntax, types of members, elements. HTTP only. */
import type { Line } from "../Acceptance.ts"
import { type HttpCase, type HttpExpected, http } from "../Case.ts"

const path = (model: string) => `/v2/models/${model}/infer`

const httpCase = (
  name: string,
  line: Line,
  body: string | Uint8Array,
  expected: HttpExpected,
  model = "single_fp32",
): HttpCase => http(name, { path: path(model), body }, expected, { proves: [line] })

const malformed = (error: string | RegExp): HttpExpected => ({ status: 400, error, tag: "MalformedRequest" })

const invalid = (error: string | RegExp): HttpExpected => ({ status: 400, error, tag: "InvalidRequest" })

const responded = (outputs: string, more = ""): HttpExpected => ({
  status: 200,
  body: `{${more}"outputs":[${outputs}]}`,
  headers: { "content-type": "application/json", "inference-header-content-length": undefined },
})

const x = (data: string, shape = "[2]", more = "") =>
  `{"name":"X","datatype":"FP32","shape":${shape}${more},"data":${data}}`

const body = (input: string, more = "") => `{${more}"inputs":[${input}]}`

/** Invalid bodies, and the parser's message for each. */
const broken: ReadonlyArray<readonly [string, string]> = [
  ["", "The document is empty. at 0"],
  [" \n ", ""],
  ["{", "Missing a name for object member. at 1"],
  ["[", ""],
  ['{"inputs"', "Missing a colon after a name of object member. at 9"],
  ['{"inputs":', ""],
  ['{"inputs":[', ""],
  ['{"inputs":[]', "Missing a comma or } after an object member. at 12"],
  ['{"inputs":[],}', "Missing a name for object member. at 13"],
  ['{"inputs":[,]}', ""],
  ['{"inputs":[]}{', "The document root must not be followed by other values. at 13"],
  ['{"inputs":[]} x', ""],
  ["{inputs:[]}", "Missing a name for object member. at 1"],
  ["{'inputs':[]}", "Missing a name for object member. at 1"],
  ['{"inputs":[] "id":""}', ""],
  ['{"id":"', "Missing a closing quotation mark in string."],
  ['{"id":"\\', ""],
  ['{"id":"\\x","inputs":[]}', "Invalid escape character in string."],
  ['{"id":"\\u12","inputs":[]}', "Incorrect hex digit after \\u escape in string."],
  ['{"id":"\\ud800","inputs":[]}', "The surrogate pair in string is invalid."],
  ['{"id":"\\udc00\\ud800","inputs":[]}', "The surrogate pair in string is invalid."],
  ['{"id":"a\nb","inputs":[]}', "Invalid encoding in string."],
  ['{"x":"\\x","inputs":[]}', "Invalid escape character in string."],
  ['{"x":["\\ud800"],"inputs":[]}', "The surrogate pair in string is invalid."],
  ['{"x":{"y":"\\u00g0"},"inputs":[]}', "Incorrect hex digit after \\u escape in string."],
  ['{"id":tru,"inputs":[]}', ""],
  ['{"x":nul,"inputs":[]}', ""],
  ['{"x":01,"inputs":[]}', ""],
  ['{"x":1.,"inputs":[]}', "Miss fraction part in number."],
  ['{"x":.5,"inputs":[]}', "Invalid value."],
  ['{"x":1e,"inputs":[]}', "Miss exponent in number."],
  ['{"x":-,"inputs":[]}', ""],
  ['{"x":+1,"inputs":[]}', ""],
  ['{"x":nan,"inputs":[]}', ""],
  ['{"x":infinity,"inputs":[]}', ""],
  ['{"x":0x10,"inputs":[]}', ""],
  ["inputs=1", ""],
  ["\ufeff{}", ""],
]

const syntax: ReadonlyArray<HttpCase> = [
  ...broken.map(([text, reason]) => {
    const quoted = reason.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    const end = / at [0-9]+$/.test(reason) ? "" : ".* at [0-9]+"
    return httpCase(
      `a body of ${JSON.stringify(text)}`,
      "C15",
      text,
      malformed(new RegExp(`^failed to parse the request JSON buffer: ${quoted}${end}$`)),
    )
  }),
  httpCase(
    "bytes that are no text",
    "C15",
    Uint8Array.of(0, 255, 254, 1),
    malformed(/^failed to parse the request JSON buffer: /),
  ),
  httpCase(
    "100,000 nested arrays in an ignored member",
    "C15",
    body(x("[1,2]"), `"y":${"[".repeat(100_000)}${"]".repeat(100_000)},`),
    {
      status: 200,
    },
  ),
  httpCase("100,000 unclosed arrays", "C15", `{"y":${"[".repeat(100_000)}`, malformed(/^failed to parse/)),
  httpCase(
    "100,000 objects inside each other",
    "C15",
    body(x("[1,2]"), `"y":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)},`),
    {
      status: 200,
    },
  ),
  httpCase("data in 99 arrays", "C7", body(x(`${"[".repeat(99)}1,2${"]".repeat(99)}`)), { status: 200 }),
  ...[100, 101, 10_000].map((depth) =>
    httpCase(
      `data in ${depth} arrays`,
      "C15",
      body(x(`${"[".repeat(depth)}1,2${"]".repeat(depth)}`)),
      invalid("JSON nesting depth exceeds maximum allowed limit (100)"),
    ),
  ),
  httpCase(
    "white space of all kinds",
    "C7",
    `\t\r\n {\n"inputs" :\r[ { "name":"X" ,\t"datatype": "FP32", "shape" : [ 2 ], "data": [ 1 ,\n2 ] } ] } \n`,
    {
      status: 200,
    },
  ),
]

const lacks = (field: string) =>
  malformed(`Unable to parse '${field}': attempt to access non-existing object member '${field}'`)

const wrong = (field: string, kind: string) =>
  malformed(`Unable to parse '${field}': attempt to access JSON non-${kind} as ${kind}`)

const members: ReadonlyArray<HttpCase> = [
  httpCase("an empty object", "C15", "{}", lacks("inputs")),
  httpCase("no object", "C15", "[]", lacks("inputs")),
  httpCase("a number", "C15", "1", lacks("inputs")),
  httpCase("null", "C15", "null", lacks("inputs")),
  ...["{}", "1", '"X"', "null", "true"].map((value) =>
    httpCase(`inputs that are ${value}`, "C15", `{"inputs":${value}}`, wrong("inputs", "array")),
  ),
  ...["[]", "1", '"X"', "null"].map((value) =>
    httpCase(`an input that is ${value}`, "C15", `{"inputs":[${value}]}`, lacks("name")),
  ),
  ...["1", "null", "[]", "{}", "true"].map((value) =>
    httpCase(`an id that is ${value}`, "C15", body(x("[1,2]"), `"id":${value},`), wrong("id", "string")),
  ),
  ...["1", "null", "[]", '"x"'].map((value) =>
    httpCase(
      `parameters that are ${value}`,
      "C15",
      body(x("[1,2]"), `"parameters":${value},`),
      wrong("parameters", "object"),
    ),
  ),
  ...["1", "null", "{}", '"x"'].map((value) =>
    httpCase(`outputs that are ${value}`, "C15", body(x("[1,2]"), `"outputs":${value},`), wrong("outputs", "array")),
  ),
  httpCase("an output without a name", "C15", body(x("[1,2]"), '"outputs":[{}],'), lacks("name")),
  httpCase("an output that is a name", "C15", body(x("[1,2]"), '"outputs":["X"],'), lacks("name")),
  httpCase("an input without a name", "C15", '{"inputs":[{"datatype":"FP32","shape":[1],"data":[1]}]}', lacks("name")),
  httpCase("an input without a datatype", "C15", '{"inputs":[{"name":"X","shape":[1],"data":[1]}]}', lacks("datatype")),
  httpCase("an input without a shape", "C15", '{"inputs":[{"name":"X","datatype":"FP32","data":[1]}]}', lacks("shape")),
  ...["1", "null", "{}", '"2"'].map((value) =>
    httpCase(`a shape that is ${value}`, "C15", body(x("[1,2]", value)), wrong("shape", "array")),
  ),
  ...["-1", "2.0", "1e1", '"2"', "null", "true", "[2]", "18446744073709551616"].map((value) =>
    httpCase(
      `an extent that is ${value}`,
      "C15",
      body(x("[1,2]", `[${value}]`)),
      // Triton's own test asserts this status.
      {
        ...malformed(/^Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer/),
        status: 500,
      },
    ),
  ),
  httpCase(
    "an extent beyond 2^53",
    "C18",
    body(x("[1,2]", "[9007199254740993]")),
    invalid(/the extent 9007199254740993/),
  ),
  ...["1", "{}", '"1,2"', "null", "true"].map((value) =>
    httpCase(`data that is ${value}`, "C15", body(x(value)), wrong("data", "array")),
  ),
  ...["null", "[1]", '{"a":1}'].map((value) =>
    httpCase(
      `a parameter that is ${value}`,
      "C21",
      body(x("[1,2]"), `"parameters":{"p":${value}},`),
      invalid("parameter 'p' has invalid type. It should be either 'int', 'bool', or 'string'."),
    ),
  ),
  ...["1", '"true"'].map((value) =>
    httpCase(
      `binary_data_output that is ${value}`,
      "C15",
      body(x("[1,2]"), `"parameters":{"binary_data_output":${value}},`),
      wrong("binary_data_output", "boolean"),
    ),
  ),
  httpCase(
    "binary_data that is 1",
    "C15",
    body(x("[1,2]"), '"outputs":[{"name":"X","parameters":{"binary_data":1}}],'),
    wrong("binary_data", "boolean"),
  ),
  httpCase(
    "a number of classes in a string",
    "C20",
    body(x("[1,2]"), '"outputs":[{"name":"X","parameters":{"classification":"1"}}],'),
    wrong("classification", "unsigned-integer"),
  ),
]

const order: ReadonlyArray<HttpCase> = [
  httpCase(
    "an answer's members in their order, with its id",
    "C7",
    body(x("[1,2]"), '"id":"7",'),
    responded(
      '{"name":"X","datatype":"FP32","shape":[2],"data":[1,2]}',
      '"id":"7","model_name":"single_fp32","model_version":"1",',
    ),
  ),
  httpCase(
    "an answer without an id",
    "C7",
    body(x("[[0.5],[0.25]]")),
    responded(
      '{"name":"X","datatype":"FP32","shape":[2],"data":[0.5,0.25]}',
      '"model_name":"single_fp32","model_version":"1",',
    ),
  ),
  httpCase("unknown members", "C7", `{"a":[{}],"inputs":[{"b":null,${x("[1,2]").slice(1)}],"z":1}`, {
    status: 200,
  }),
  httpCase(
    "data before name, datatype and shape",
    "C7",
    '{"inputs":[{"data":[1,[2]],"shape":[2],"datatype":"FP32","name":"X"}]}',
    {
      status: 200,
      body: /"data":\[1,2\]/,
    },
  ),
  ...(
    [
      ["id", `{"id":"1","id":"2","inputs":[${x("[1,2]")}]}`],
      ["inputs", `{"inputs":[${x("[1,2]")}],"inputs":[]}`],
      ["data", `{"inputs":[${x("[1,2]").slice(0, -1)},"data":[1,2]}]}`],
      ["p", body(x("[1,2]"), '"parameters":{"p":1,"p":1},')],
      ["unknown", body(x("[1,2]"), '"unknown":1,"unknown":1,')],
    ] as const
  ).map(([key, text]) =>
    httpCase(
      `the member ${key} twice`,
      "C15",
      text,
      invalid(new RegExp(`^failed to parse the request JSON buffer: Duplicate object member '${key}' at [0-9]+$`)),
    ),
  ),
  ...["NaN", "Infinity", "-Infinity"].flatMap((number) =>
    [`"parameters":{"p":${number}},`, `"unknown":[${number}],`].map((member) =>
      httpCase(
        `${number} in ${member}`,
        "C15",
        body(x("[1,2]"), member),
        invalid(/^failed to parse the request JSON buffer: (NaN|Infinity) outside the data of a tensor at [0-9]+$/),
      ),
    ),
  ),
  ...["id", "unknown", "\u00ff"].map((key) =>
    httpCase(
      `a string that is not UTF-8 in ${key}`,
      "C15",
      Buffer.from(body(x("[1,2]"), `"${key}":"${key === "\u00ff" ? "" : "\u00ff"}",`), "latin1"),
      invalid(/^failed to parse the request JSON buffer: Invalid encoding in string\. at [0-9]+$/),
    ),
  ),
  httpCase(
    "a member with a byte order mark is another one",
    "C15",
    `{"\ufeffinputs":[${x("[1,2]")}]}`,
    lacks("inputs"),
  ),
  httpCase(
    "an input that stands twice",
    "C17",
    body(`${x("[1,2]")},${x("[1,2]")}`),
    invalid("[request id: <id_unknown>] input 'X' already exists in request"),
  ),
  httpCase(
    "a name in escapes",
    "C7",
    String.raw`{"inputs":[{"name":"\u0058","datatype":"FP32","shape":[1],"data":[1]}]}`,
    {
      status: 200,
    },
  ),
]

export const json: ReadonlyArray<HttpCase> = [...syntax, ...members, ...order]
