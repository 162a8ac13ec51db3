/** Scripts of a repository: their arguments, their calls, and their errors. */
import type { codes } from "../Codes.ts"
import type { Claim, InferCase } from "../Case.ts"
import { tensor } from "../InferRequest.ts"
import { on } from "./stored.ts"

/** The request and the start arguments that a script receives. */
const argumentsCase: InferCase = {
  ...on(
    "C21",
    "A12.script.id",
    "A12.script.parameters",
    "A12.script.outputs",
    "A12.script.timeout",
    "A12.script.arguments",
    "A12.script.tools",
    "A11.parameters.script",
  ),
  name: "a script has all that a request has",
  request: {
    model: "told",
    id: "seven",
    parameters: { text: "vanilla", truth: true, whole: 3n, fraction: 0.5, timeout: 60_000_000n },
    inputs: [tensor("X", "BYTES", [1, 1], ["x"])],
    outputs: [{ name: "Y" }],
  },
  expected: {
    outputs: [
      tensor(
        "Y",
        "BYTES",
        [1, 1],
        [
          JSON.stringify({
            id: "seven",
            rows: 1,
            parameters: ["vanilla", true, "3", 0.5, "60000000"],
            requestedOutputs: ["Y"],
            args: ["told", "1", "told_0_0", "CPU", "0", "told", 4, "by"],
          }),
        ],
      ),
    ],
  },
}

const once = ["HTTP JSON", "gRPC raw"] as const

/** The codes of Triton's errors, as what they are called here. */
const tags = [
  "InvalidRequest",
  "ModelNotFound",
  "Unavailable",
  "Unsupported",
  "AlreadyExists",
  "Cancelled",
  "Unknown",
  "ExecutionFailed",
] as const satisfies ReadonlyArray<keyof typeof codes>

const failing = (
  name: string,
  mode: string,
  tag: keyof typeof codes,
  error: string | RegExp,
  ...proves: ReadonlyArray<Claim>
): InferCase => ({
  ...on(...proves),
  name: `a script that ${name}`,
  as: once,
  request: { model: "failing", inputs: [tensor("X", "BYTES", [1], [mode])] },
  expected: { tag, error },
})

const failures: ReadonlyArray<InferCase> = [
  ...tags.map((tag) => failing(`answers by ${tag}`, `return ${tag}`, tag, "as it was asked", "A12.script.codes")),
  ...tags.map((tag) => failing(`throws ${tag}`, `throw ${tag}`, tag, "as it was asked", "A12.script.codes")),
  failing(
    "throws",
    "throw",
    "ExecutionFailed",
    "Failed to process the request(s) for model 'failing_0', message: as it was asked",
    "A12.script.exception",
  ),
  failing("answers by an error", "return", "ExecutionFailed", "as it was asked", "A12.script.error"),
  failing(
    "answers by nothing",
    "nothing",
    "ExecutionFailed",
    /returned 0 results for a batch of 1 requests/,
    "A12.script.count",
  ),
]

const callingCase: InferCase = {
  ...on("A12.script.model"),
  name: "a script asks another model",
  request: { model: "asking", inputs: [tensor("X", "FP32", [2, 1], [1, 2])] },
  expected: { outputs: [tensor("Y", "FP32", [2, 1], [2, 3])] },
}

const withoutOption: InferCase = {
  ...on("C19", "A11.io.optional.script"),
  name: "an optional input of a script is left out",
  request: { model: "plus_optional", inputs: [tensor("X", "FP32", [1, 1], [1])] },
  expected: { outputs: [tensor("Y", "FP32", [1, 1], [101])] },
}

export const storedScripts: ReadonlyArray<InferCase> = [argumentsCase, ...failures, withoutOption, callingCase]
