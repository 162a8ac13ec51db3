/** Round trips of every datatype: single elements, vectors, batches, no elements, and the limits of the range. */
import type { Line } from "../Acceptance.ts"
import type { InferCase } from "../Case.ts"
import { type Element, tensor } from "../InferRequest.ts"

const floats = (min: number, max: number): ReadonlyArray<Element> => [
  0,
  -0,
  1.5,
  -1,
  min,
  -min,
  max,
  -max,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
]

/** The values that are lost first where something is wrong. */
const extremes: { readonly [datatype: string]: ReadonlyArray<Element> } = {
  BOOL: [true, false, false, true],
  UINT8: [0, 1, 127, 128, 255],
  UINT16: [0, 255, 256, 32767, 32768, 65535],
  UINT32: [0, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
  UINT64: [0n, 1n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n],
  INT8: [0, -1, 127, -128],
  INT16: [0, -1, 32767, -32768],
  INT32: [0, -1, 2 ** 31 - 1, -(2 ** 31)],
  INT64: [0n, -1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n)],
  FP16: floats(2 ** -24, 65504),
  FP32: [...floats(2 ** -149, (2 - 2 ** -23) * 2 ** 127), Math.fround(0.1), Math.fround(1 / 3), 16777216, 1e-45],
  FP64: [...floats(Number.MIN_VALUE, Number.MAX_VALUE), 0.1, Math.PI, 2 ** 53, 1e21, 123456789012345680],
  BF16: floats(2 ** -133, (2 - 2 ** -7) * 2 ** 127),
  BYTES: [
    "",
    "a",
    "\u0000",
    'a "quoted" \\ and / text',
    "line\nbreak\ttab\u0001\u001f",
    "größer",
    "\u{1f419}",
    "\u2028\ufeff",
    "\ufeffx",
  ],
}

const proves: { readonly [datatype: string]: ReadonlyArray<Line> } = {
  BYTES: ["C10", "C7", "C8", "C23"],
  FP16: ["C11"],
  BF16: ["C11"],
  INT64: ["C12"],
  UINT64: ["C12"],
  FP32: ["C12"],
  FP64: ["C12"],
}

const shapes = (datatype: string, values: ReadonlyArray<Element>): ReadonlyArray<InferCase> => {
  const [first = 0, second = 0] = values
  const single = (label: string, shape: ReadonlyArray<number>, elements: ReadonlyArray<Element>): InferCase => ({
    name: `${datatype}: ${label}`,
    proves: proves[datatype] ?? ["C7", "C8", "C23"],
    request: { model: `single_${datatype.toLowerCase()}`, inputs: [tensor("X", datatype, shape, elements)] },
    expected: { outputs: [tensor("X", datatype, shape, elements)] },
  })
  const batched = (label: string, shape: ReadonlyArray<number>, elements: ReadonlyArray<Element>): InferCase => {
    const { request, ...others } = single(label, shape, elements)
    return { ...others, request: { ...request, model: `batched_${datatype.toLowerCase()}`, id: "7" } }
  }
  const rows = Array.from({ length: 8 }, () => values).flat()
  return [
    single("one element", [1], [second]),
    single("no element", [0], []),
    single("the ends of its range", [values.length], values),
    single(
      "many elements",
      [300],
      Array.from({ length: 300 }, (_, index) => values[index % values.length] ?? 0),
    ),
    batched("a row of one", [1, 1], [first]),
    batched("two rows", [2, 2], [first, second, second, first]),
    batched("a full batch", [8, values.length], rows),
    batched("three rows of nothing", [3, 0], []),
  ]
}

const binaryOnly = [Uint8Array.of(0xff, 0xfe, 0x00), Uint8Array.of(0x80), Uint8Array.of(0xed, 0xa0, 0x80)]

/** One model, in ONNX Runtime or in code, through another set of datatypes, shapes and names. */
const others: ReadonlyArray<InferCase> = [
  {
    name: "BYTES that are no UTF-8 travel in binary",
    proves: ["C10"],
    request: { model: "single_bytes", inputs: [tensor("X", "BYTES", [3], binaryOnly)] },
    expected: { outputs: [tensor("X", "BYTES", [3], binaryOnly)] },
  },
  {
    name: "simple adds and subtracts",
    proves: ["C7", "C8", "C23"],
    request: {
      model: "simple",
      inputs: [
        tensor(
          "INPUT0",
          "INT32",
          [1, 16],
          Array.from({ length: 16 }, (_, index) => index),
        ),
        tensor(
          "INPUT1",
          "INT32",
          [1, 16],
          Array.from({ length: 16 }, () => 1),
        ),
      ],
    },
    expected: {
      outputs: [
        tensor(
          "OUTPUT0",
          "INT32",
          [1, 16],
          Array.from({ length: 16 }, (_, index) => index + 1),
        ),
        tensor(
          "OUTPUT1",
          "INT32",
          [1, 16],
          Array.from({ length: 16 }, (_, index) => index - 1),
        ),
      ],
    },
  },
  {
    name: "an ONNX model answers as one in code does",
    request: {
      model: "onnx_simple",
      id: 'an id with "quotes" and größe',
      inputs: [tensor("B", "FP32", [2, 2], [1, 0.5, 0.25, 0]), tensor("A", "FP32", [2, 2], [1, 2, 3, Number.NaN])],
    },
    expected: {
      outputs: [
        tensor("SUM", "FP32", [2, 2], [2, 2.5, 3.25, Number.NaN]),
        tensor("DIFFERENCE", "FP32", [2, 2], [0, 1.5, 2.75, Number.NaN]),
      ],
    },
  },
  {
    name: "an id that begins with a byte order mark keeps it",
    proves: ["C7"],
    request: { model: "single_bytes", id: "\ufeffid", inputs: [tensor("X", "BYTES", [1], ["\ufeffx"])] },
    expected: { outputs: [tensor("X", "BYTES", [1], ["\ufeffx"])] },
  },
  {
    name: "a tensor without dims has one element",
    request: {
      model: "shapes",
      inputs: [
        tensor("D", "UINT8", [], [7]),
        tensor("C", "FP32", [1], [0.5]),
        tensor("B", "INT64", [2], [2n ** 63n - 1n, -1n]),
        tensor("A", "FP32", [1, 2], [1, 2]),
      ],
    },
    expected: {
      outputs: [
        tensor("A", "FP32", [1, 2], [1, 2]),
        tensor("B", "INT64", [2], [2n ** 63n - 1n, -1n]),
        tensor("C", "FP32", [1], [0.5]),
        tensor("D", "UINT8", [], [7]),
      ],
    },
  },
  ...[
    [1, 1],
    [2, 3],
    [0, 3],
    [3, 0],
  ].map(([rows = 0, columns = 0]): InferCase => {
    const matrix = tensor(
      "X",
      "FP32",
      [rows, columns],
      Array.from({ length: rows * columns }, (_, index) => index / 4),
    )
    return {
      name: `a matrix of ${rows} by ${columns}`,
      request: { model: "matrix", inputs: [matrix] },
      expected: { outputs: [matrix] },
    }
  }),
]

export const datatypes: ReadonlyArray<InferCase> = [
  ...Object.entries(extremes).flatMap(([datatype, values]) => shapes(datatype, values)),
  ...others,
]
