/** Models of a repository: their responses in every encoding. */
import type { Tag } from "@nereid/core/Errors"
import type { Claim, InferCase } from "../Case.ts"
import { type Element, type Tensor, tensor } from "../InferRequest.ts"
import { numeric, versions } from "../StoredModels.ts"
import { storedAnswers } from "./storedAnswers.ts"
import { storedEnsembles } from "./storedEnsembles.ts"
import { storedScripts } from "./storedScripts.ts"

const stored = { server: "stored" } as const

const unknown = "[request id: <id_unknown>] "

const proving = (one: InferCase, ...claims: ReadonlyArray<Claim>): InferCase => ({
  ...one,
  proves: [...(one.proves ?? []), ...claims],
})

/**
 * Rows of two elements, by datatype: A, B, and what becomes of them. The ends of the range go around where they are
 * integers.
 */
const operands = (
  datatype: (typeof numeric)[number],
): Readonly<Record<"a" | "b" | "sum" | "difference", ReadonlyArray<Element>>> => {
  switch (datatype) {
    case "BOOL":
      return {
        a: [true, true, false, false],
        b: [true, false, true, false],
        sum: [true, false, false, false],
        difference: [true, true, true, false],
      }
    case "UINT64":
      return {
        a: [2n ** 64n - 1n, 2n ** 53n, 5n, 0n],
        b: [0n, 1n, 3n, 0n],
        sum: [2n ** 64n - 1n, 2n ** 53n + 1n, 8n, 0n],
        difference: [2n ** 64n - 1n, 2n ** 53n - 1n, 2n, 0n],
      }
    case "INT64":
      return {
        a: [-(2n ** 63n), 2n ** 53n, 5n, -1n],
        b: [0n, 1n, 7n, -1n],
        sum: [-(2n ** 63n), 2n ** 53n + 1n, 12n, -2n],
        difference: [-(2n ** 63n), 2n ** 53n - 1n, -2n, 0n],
      }
    default:
      return { a: [7, 5, 100, 0], b: [0, 3, 27, 0], sum: [7, 8, 127, 0], difference: [7, 2, 73, 0] }
  }
}

const addSub = (datatype: (typeof numeric)[number]): ReadonlyArray<InferCase> => {
  const { a, b, sum, difference } = operands(datatype)
  const model = `add_sub_${datatype.toLowerCase()}`
  const of = (name: string, rows: number, elements: ReadonlyArray<Element>) =>
    tensor(name, datatype, [rows, 2], elements.slice(0, rows * 2))
  return [0, 1, 2].map((rows) => ({
    ...stored,
    name: `${datatype} of a repository: ${rows} rows`,
    proves: ["C35", "A11.io.data-type"],
    request: { model, inputs: [of("B", rows, b), of("A", rows, a)] },
    expected:
      rows === 0
        ? { tag: "InvalidRequest", error: `${unknown}inference request batch-size must be >= 1 for '${model}'` }
        : { outputs: [of("SUM", rows, sum), of("DIFFERENCE", rows, difference)] },
  }))
}

const echoed = (name: string, model: string, input: Tensor, output: Tensor = { ...input, name: "Y" }): InferCase => ({
  ...stored,
  name,
  proves: ["C35"],
  request: { model, inputs: [input] },
  expected: { outputs: [output] },
})

const refused = (name: string, model: string, input: Tensor, error: string | RegExp): InferCase => ({
  ...stored,
  name,
  proves: ["C18"],
  request: { model, inputs: [input] },
  expected: { tag: "InvalidRequest", error },
})

const halves = (count: number) => Array.from({ length: count }, (_, index) => index / 2)

const texts = ["", "größer 🌊", "line\nbreak", "last"]

const shapes: ReadonlyArray<InferCase> = [
  echoed(
    "a file without a configuration",
    "bare",
    tensor("X", "FP32", [2, 1], [0, 1]),
    tensor("Y", "FP32", [2, 1], [1, 2]),
  ),
  proving(echoed("fixed dims, without a batch", "fixed", tensor("X", "FP32", [2, 3], halves(6))), "A11.io.dims"),
  ...[0, 1, 3].flatMap((n) =>
    [0, 2].map((m) =>
      proving(
        echoed(
          `variable dims of ${n} and ${m}`,
          "variable",
          tensor(
            "X",
            "INT64",
            [2, n, m],
            Array.from({ length: 2 * n * m }, (_, index) => BigInt(index) - 2n ** 53n - 1n),
          ),
        ),
        "A11.io.dims.variable",
      ),
    ),
  ),
  ...[0, 1, 4].map((columns) =>
    echoed(`rows of ${columns}`, "rows", tensor("X", "FP32", [3, columns], halves(3 * columns))),
  ),
  echoed("strings", "strings", tensor("X", "BYTES", [2, 2], texts)),
  echoed("rows without strings", "strings", tensor("X", "BYTES", [2, 0], [])),
  echoed("a scalar is one element", "scalar", tensor("X", "INT32", [1], [-7])),
  echoed("scalars in a batch", "scalars", tensor("X", "FP64", [3, 1], [0.1, Number.NaN, -Infinity])),
  echoed(
    "an output of as many elements as there are",
    "positions",
    tensor("X", "BOOL", [4], [false, true, false, true]),
    tensor("INDICES", "INT64", [1, 2], [1n, 3n]),
  ),
  echoed(
    "an output without elements",
    "positions",
    tensor("X", "BOOL", [3], [false, false, false]),
    tensor("INDICES", "INT64", [1, 0], []),
  ),
  proving(
    echoed(
      "reshape, with a variable dim",
      "reshaped",
      tensor("X", "FP32", [2, 4, 3], halves(24)),
      tensor("Y", "FP32", [2, 1, 4, 3], halves(24)),
    ),
    "A11.io.reshape",
    "A11.io.reshape.variable",
  ),
  echoed(
    "reshape, of no elements",
    "reshaped",
    tensor("X", "FP32", [2, 4, 0], []),
    tensor("Y", "FP32", [2, 1, 4, 0], []),
  ),
  proving(
    echoed(
      "reshape to no dims",
      "reshaped_to_nothing",
      tensor("X", "UINT8", [3, 1], [1, 2, 3]),
      tensor("Y", "UINT8", [3, 1, 1], [1, 2, 3]),
    ),
    "A11.io.reshape",
    "A11.io.reshape.empty",
  ),
  proving(
    echoed("a ragged input", "ragged", tensor("X", "FP32", [1, 3], [1, 2, 3]), tensor("Y", "FP32", [1, 3], [2, 4, 6])),
    "A11.ragged.input",
    "A11.ragged.output",
  ),
  echoed("a script", "script", tensor("X", "BYTES", [2, 2], texts)),
]

const refusals: ReadonlyArray<InferCase> = [
  proving(
    refused(
      "a shape that the file does not have",
      "fixed",
      tensor("X", "FP32", [3, 2], halves(6)),
      `${unknown}unexpected shape for input 'X' for model 'fixed'. Expected [2,3], got [3,2].`,
    ),
    "A11.io.dims",
  ),
  refused(
    "dims that are not those of the configuration, in a batch",
    "reshaped",
    tensor("X", "FP32", [1, 2, 2, 1], halves(4)),
    /^\[request id: <id_unknown>\] unexpected shape for input 'X' for model 'reshaped'\. Expected \[-1,4,-1\], got \[1,2,2,1\]\. NOTE: Setting a non-zero max_batch_size/,
  ),
  proving(
    refused(
      "more rows than the completed configuration has",
      "bare",
      tensor("X", "FP32", [5, 1], halves(5)),
      `${unknown}inference request batch-size must be <= 4 for 'bare'`,
    ),
    "A11.max-batch-size",
  ),
  refused(
    "text with a NUL, which onnxruntime-node has no strings for",
    "strings",
    tensor("X", "BYTES", [1, 2], ["a", "\u0000"]),
    `${unknown}element 1 of input 'X' of model 'strings' contains a NUL, which ONNX Runtime cannot take`,
  ),
  refused(
    "another datatype than that of the file",
    "scalars",
    tensor("X", "FP32", [1, 1], [1]),
    `${unknown}inference input 'X' data-type is 'FP32', but model 'scalars' expects 'FP64'`,
  ),
]

const two = (name: string, ...elements: ReadonlyArray<bigint>) =>
  tensor(name, "INT64", [elements.length / 2, 2], elements)

const optional: ReadonlyArray<InferCase> = [
  {
    ...stored,
    name: "an input that the file has a value for is left out",
    proves: ["C19", "A11.io.optional"],
    request: { model: "optional", inputs: [two("X", 1n, 2n, 3n, 4n)] },
    expected: { outputs: [two("Y", 11n, 22n, 13n, 24n)] },
  },
  {
    ...stored,
    name: "an input that the file has a value for is given",
    proves: ["C19", "A11.io.optional"],
    request: { model: "optional", inputs: [two("X", 1n, 2n), two("AMOUNT", 0n, -2n)] },
    expected: { outputs: [two("Y", 1n, 0n)] },
  },
  {
    ...stored,
    name: "the input that the file has no value for is missing",
    proves: ["C19", "A11.io.optional"],
    request: { model: "optional", inputs: [two("AMOUNT", 0n, -2n)] },
    expected: {
      tag: "InvalidRequest",
      error:
        /expected number of inputs between 1 and 2 but got 1 inputs for model 'optional'\. Got input\(s\) \['AMOUNT'\], but missing required input\(s\) \['X'\]/,
    },
  },
]

const strings: InferCase = {
  ...stored,
  name: "strings of two inputs",
  proves: ["C35"],
  request: {
    model: "add_sub_bytes",
    inputs: [tensor("B", "BYTES", [1, 2], ["b", "B"]), tensor("A", "BYTES", [1, 2], ["a", ""])],
  },
  expected: {
    outputs: [tensor("SUM", "BYTES", [1, 2], ["a", ""]), tensor("DIFFERENCE", "BYTES", [1, 2], ["b", "B"])],
  },
}

const classes: InferCase = {
  ...stored,
  name: "classes have the labels of their file",
  proves: ["C20", "A11.io.labels"],
  request: {
    model: "labelled",
    inputs: [tensor("X", "FP32", [2, 3], [1, 2, 3, 3, 2, 1])],
    outputs: [{ name: "Y", parameters: { classification: 2n } }],
  },
  expected: {
    outputs: [
      tensor(
        "Y",
        "BYTES",
        [2, 2],
        ["3.000000:2:newt of the pond", "2.000000:1:dog", "3.000000:0:cat", "2.000000:1:dog"],
      ),
    ],
  },
}

/** Which of the versions of a model answer. */
const policies: Readonly<Record<string, readonly [Claim, ReadonlyArray<number>]>> = {
  latest: ["A6.version.latest", [10]],
  latest_two: ["A6.version.latest-n", [3, 10]],
  all_versions: ["A6.version.all", [1, 2, 3, 10]],
  specific: ["A6.version.specific", [1, 3]],
}

const x = tensor("X", "FP32", [1], [0])

const policy = ([model, [claim, served]]: readonly [
  string,
  readonly [Claim, ReadonlyArray<number>],
]): ReadonlyArray<InferCase> => {
  const response = (version: number) => ({
    outputs: [tensor("Y", "FP32", [1], [version])],
    version: String(version),
  })
  const highest: InferCase = {
    ...stored,
    name: `${model}: no version is the highest`,
    proves: ["C34", "A6.version.highest"],
    request: { model, inputs: [x] },
    expected: response(served.at(-1) ?? 0),
  }
  const each = versions.map((version): InferCase => ({
    ...stored,
    name: `${model}: version ${version}`,
    proves: ["C34", claim],
    request: { model, version: String(version), inputs: [x] },
    expected: served.includes(version)
      ? response(version)
      : { tag: "ModelNotFound", error: `Request for unknown model: '${model}' version ${version} is not found` },
  }))
  return [highest, ...each]
}

const notLoaded = (model: string, version: string | undefined, tag: Tag, problem: string): InferCase => ({
  ...stored,
  name: `${model}${version === undefined ? "" : ` version ${version}`} is not loaded`,
  proves: ["C16"],
  request: { model, ...(version === undefined ? {} : { version }), inputs: [x] },
  expected: { tag, error: `Request for unknown model: '${model}' ${problem}` },
})

const absent: ReadonlyArray<InferCase> = [
  notLoaded("idle", undefined, "ModelNotFound", "is not found"),
  notLoaded("idle", "1", "ModelNotFound", "is not found"),
  notLoaded("nothing", undefined, "ModelNotFound", "is not found"),
  notLoaded("bad_batch", undefined, "ModelNotFound", "has no available versions"),
  notLoaded("bad_batch", "1", "ModelNotReady", "version 1 is not at ready state"),
  notLoaded("bad_batch", "2", "ModelNotFound", "version 2 is not found"),
]

export const storedModels: ReadonlyArray<InferCase> = [
  ...numeric.flatMap(addSub),
  ...shapes,
  ...refusals,
  ...optional,
  strings,
  classes,
  ...storedAnswers,
  ...storedEnsembles,
  ...storedScripts,
  ...Object.entries(policies).flatMap(policy),
  ...absent,
]
