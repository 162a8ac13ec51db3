/**
 * The elements of JSON tensors: accepted and rejected values of each datatype, and their encoding in responses. HTTP
 * only.
 */
import type { Line } from "../Acceptance.ts"
import { type HttpCase, type HttpExpected, http } from "../Case.ts"

const httpCase = (
  datatype: string,
  data: string,
  shape: string,
  expected: HttpExpected,
  line: Line,
  label = "",
): HttpCase =>
  http(
    `${datatype} data ${label === "" ? data : label}`,
    {
      path: `/v2/models/single_${datatype.toLowerCase()}/infer`,
      body: `{"inputs":[{"name":"X","datatype":"${datatype}","shape":${shape},"data":${data}}]}`,
    },
    expected,
    { proves: [line] },
  )

const quoted = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

/** Elements, and how they come back where that is another text. */
const taken: ReadonlyArray<readonly [string, string, string?]> = [
  ["BOOL", "true,false"],
  ["INT8", "-128,127"],
  ["INT8", "-0", "0"],
  ["UINT8", "0,255"],
  ["INT16", "-32768,32767"],
  ["UINT16", "65535"],
  ["INT32", "-2147483648,2147483647"],
  ["UINT32", "4294967295"],
  ["INT64", "-9223372036854775808,9223372036854775807,9007199254740993,-9007199254740993,0"],
  ["UINT64", "18446744073709551615,9223372036854775808,9007199254740993,0"],
  ["FP32", "1.5,-0.25,1e3", "1.5,-0.25,1000"],
  ["FP32", "0.1,3.4028234663852886e38,1e-45,16777217", "0.1,3.4028235e+38,1e-45,16777216"],
  ["FP32", "NaN,Infinity,-Infinity"],
  ["FP32", "0.10000000149011612", "0.1"],
  ["FP32", "1e-400,-1e-400", "0,-0.0"],
  ["FP64", "0.1,1.7976931348623157e+308,5e-324"],
  ["FP64", "NaN,Infinity,-Infinity"],
  ["FP64", "123456789012345678901234567890", "1.2345678901234568e+29"],
  ["BYTES", '"a","","größer","\\u0000","\\ud83d\\udc19"', '"a","","größer","\\u0000","\u{1f419}"'],
  ["BYTES", String.raw`"\"\\\/\b\f\n\r\t"`, String.raw`"\"\\/\b\f\n\r\t"`],
]

const takes = taken.map(([datatype, data, back = data]) => {
  const count = data.split(",").length
  return httpCase(
    datatype,
    `[${data}]`,
    `[${count}]`,
    { status: 200, body: new RegExp(`${quoted(`"data":[${back}]`)}`) },
    "C12",
  )
})

const notUnsigned = "attempt to access JSON non-unsigned-integer as unsigned-integer"

/** Invalid elements by datatype, and the error that names the expected type. */
const refused: ReadonlyArray<readonly [string, ReadonlyArray<string>, string]> = [
  ["BOOL", ["1", "0", '"true"', "null", "1.0", "{}"], "attempt to access JSON non-boolean as boolean"],
  [
    "INT32",
    ["1.0", "1e2", "true", '"1"', "null", "{}", "NaN", "Infinity"],
    "attempt to access JSON non-signed-integer as signed-integer",
  ],
  ...["UINT8", "UINT16", "UINT32", "UINT64"].map(
    (datatype) => [datatype, ["1.5", "true", '"1"', "null", "-1", "-18446744073709551615"], notUnsigned] as const,
  ),
  ["UINT64", ["18446744073709551616"], notUnsigned],
  [
    "INT64",
    ["1.0", '"1"', "1e400", "9223372036854775808", "-9223372036854775809", "123456789012345678901234567890"],
    "attempt to access JSON non-signed-integer as signed-integer",
  ],
  ["FP32", ["true", '"1"', "null", "{}"], "attempt to access JSON non-number as number"],
  ["FP64", ["true", '"NaN"', "null"], "attempt to access JSON non-number as number"],
  ["BYTES", ["1", "true", "null", "{}", "NaN"], "attempt to access JSON non-string as string"],
  ["INT8", ["128", "-129", "1000000000000000000000"], "integer out of range"],
  ["UINT8", ["256"], "integer out of range"],
  ["INT16", ["32768", "-32769"], "integer out of range"],
  ["UINT16", ["65536"], "integer out of range"],
  ["INT32", ["2147483648", "-2147483649"], "integer out of range"],
  ["UINT32", ["4294967296"], "integer out of range"],
]

const refuses = refused.flatMap(([datatype, elements, problem]) =>
  elements.map((element) =>
    httpCase(
      datatype,
      `[${element}]`,
      "[1]",
      {
        status: 400,
        error: `Unable to parse ${datatype === "BYTES" ? "JSON bytes array" : "'data'"}: ${problem}: element 0 of 'X' is ${element}, expected ${datatype}`,
        tag: "MalformedRequest",
      },
      "C15",
    ),
  ),
)

const counts: ReadonlyArray<HttpCase> = [
  ...["[]", "[1]", "[[1]]", "[[],[1]]"].map((data) =>
    httpCase(
      "FP32",
      data,
      "[2]",
      { status: 400, error: "Failed to parse 'data' field: shape does not match true shape", tag: "MalformedRequest" },
      "C15",
      `${data} for two`,
    ),
  ),
  ...["[1,2,3]", "[[1,2],[3,4]]", "[1,2,[3]]"].map((data) =>
    httpCase(
      "FP32",
      data,
      "[2]",
      {
        status: 400,
        error: "Unable to parse 'data': Shape does not match true shape of 'data' field",
        tag: "MalformedRequest",
      },
      "C15",
      `${data} for two`,
    ),
  ),
  ...["[1,2]", "[[1],[2]]", "[[1,2]]", "[[[1]],2]", "[[],1,2]"].map((data) =>
    httpCase("FP32", data, "[2]", { status: 200, body: /"shape":\[2\],"data":\[1,2\]/ }, "C7", `${data} for two`),
  ),
  httpCase("FP32", "[]", "[0]", { status: 200, body: /"shape":\[0\],"data":\[\]/ }, "C7", "none for none"),
  httpCase(
    "FP32",
    "[1]",
    "[4000000000]",
    { status: 400, tag: "MalformedRequest", error: /shape does not match/ },
    "C15",
    "one for four thousand million",
  ),
  httpCase(
    "BYTES",
    '["a",1]',
    "[1]",
    {
      status: 400,
      tag: "MalformedRequest",
      error:
        "Unable to parse JSON bytes array: attempt to access JSON non-string as string: element 1 of 'X' is 1, expected BYTES",
    },
    "C15",
    "with a number, and too many",
  ),
  httpCase(
    "BYTES",
    '["a"]',
    "[4000000000]",
    {
      status: 400,
      tag: "InvalidRequest",
      error:
        "[request id: <id_unknown>] expected 4000000000 string elements for inference input 'X' for model 'single_bytes', got 1",
    },
    "C18",
    "one for four thousand million",
  ),
  httpCase(
    "BYTES",
    '["a"]',
    "[0]",
    {
      status: 400,
      tag: "InvalidRequest",
      error:
        "[request id: <id_unknown>] unexpected number of string elements 1 for inference input 'X' for model 'single_bytes', expecting 0",
    },
    "C18",
    "one for none",
  ),
  httpCase(
    "FP32",
    "[1",
    "[1]",
    { status: 400, tag: "MalformedRequest", error: /Missing a comma or \]/ },
    "C15",
    "that does not end",
  ),
  httpCase(
    "FP32",
    "[1 2]",
    "[2]",
    { status: 400, tag: "MalformedRequest", error: /Missing a comma or \]/ },
    "C15",
    "without commas",
  ),
  httpCase(
    "FP64",
    "[1e400]",
    "[1]",
    { status: 400, tag: "MalformedRequest", error: /Number too big to be stored in double/ },
    "C15",
    "beyond FP64",
  ),
]

const halves = ["FP16", "BF16"].flatMap((datatype) => [
  httpCase(
    datatype,
    "[1]",
    "[1]",
    {
      status: 400,
      error: `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input X`,
      tag: "InvalidRequest",
    },
    "C11",
  ),
  http(
    `${datatype} in binary, and out as JSON`,
    {
      path: `/v2/models/single_${datatype.toLowerCase()}/infer`,
      headers: { "Inference-Header-Content-Length": "95" },
      body: `${`{"inputs":[{"name":"X","datatype":"${datatype}","shape":[1],"parameters":{"binary_data_size":2}}]}`.padEnd(95)}\0\0`,
    },
    {
      status: 400,
      error: `sending ${datatype} data via JSON is not supported. Please use the binary data format for output X`,
      tag: "InvalidRequest",
    },
    { proves: ["C11"] },
  ),
])

export const jsonElements: ReadonlyArray<HttpCase> = [...takes, ...refuses, ...counts, ...halves]
