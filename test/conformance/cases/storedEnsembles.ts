/**
 * Ensembles of a repository beyond their steps: labels, batches of models without batching, reshapes, and the sequence
 * in the parameters of responses. Reshapes of scripts are here too, as they are the same.
 */
import { GRPCInferenceService, ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, http, type InferCase, rpc } from "../Case.ts"
import { encode } from "../GrpcEncoding.ts"
import { type Outcome, type Parameters, type Tensor, tensor } from "../InferRequest.ts"
import { on, part } from "./stored.ts"

const fp32 = (name: string, shape: ReadonlyArray<number>, add = 0): Tensor =>
  tensor(
    name,
    "FP32",
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, index) => index + add),
  )

const answer = (name: string, model: string, input: Tensor, expected: Outcome): InferCase => ({
  ...on("C37"),
  name: `ensemble: ${name}`,
  request: { model, inputs: [input] },
  expected,
})

const reshaped = (name: string, model: string, input: Tensor, expected: Outcome): InferCase => ({
  ...answer(name, model, input, expected),
  ...on("A11.io.reshape"),
  name: `reshape: ${name}`,
})

const classes = (name: string, model: string, ...outputs: ReadonlyArray<readonly [string, string]>): InferCase => ({
  ...on("C37", "C20"),
  name: `ensemble: ${name}`,
  request: {
    model,
    inputs: [fp32("X", [1, 16])],
    outputs: outputs.map(([name]) => ({ name, parameters: { classification: 1n } })),
  },
  expected: { outputs: outputs.map(([name, text]) => tensor(name, "BYTES", [1, 1], [text])) },
})

const refused = (error: string): Outcome => ({ tag: "InvalidRequest", error })

const unknown = "[request id: <id_unknown>] "

export const storedEnsembles: ReadonlyArray<InferCase> = [
  classes("labels of the step", "labels_of_step", ["Y", "15.000000:15:label15"]),
  classes("labels of the step of a step", "labels_of_ensemble", ["Y", "15.000000:15:label15"]),
  classes("its own labels alone, although they are too few", "labels_of_own", ["Y", "15.000000:15"]),
  classes(
    "labels of an inner tensor, and no labels behind it",
    "labels_of_two",
    ["T", "15.000000:15:label15"],
    ["Y", "15.000000:15"],
  ),

  answer("a model without batching has the whole batch", "batch_of_whole", fp32("X", [2, 16]), {
    outputs: [fp32("Y", [2, 16], 200)],
  }),
  answer("and a batch of one row", "batch_of_whole", fp32("X", [1, 16]), { outputs: [fp32("Y", [1, 16], 100)] }),
  answer("but no more rows than the ensemble takes", "batch_of_whole", fp32("X", [3, 16]), {
    ...refused(`${unknown}inference request batch-size must be <= 2 for 'batch_of_whole'`),
  }),
  answer("a whole tensor is a batch again", "batch_through_whole", fp32("X", [2, 16]), {
    outputs: [fp32("Y", [2, 16], 200)],
  }),
  answer("a model without batching has the single row", "batch_of_row", fp32("X", [1, 16]), {
    outputs: [fp32("Y", [1, 16])],
  }),
  answer("two rows for a model that takes one", "batch_of_row", fp32("X", [2, 16]), {
    tag: "InvalidRequest",
    error:
      /^in ensemble 'batch_of_row', .*unexpected shape for input 'X' for model 'single_row'. Expected \[16\], got \[2,16\]/,
  }),
  answer("without batching, over a model that batches", "whole_of_batch", fp32("X", [3, 16]), {
    outputs: [fp32("Y", [3, 16])],
  }),
  answer("without batching, one row of a model that batches", "row_of_batch", fp32("X", [16]), {
    outputs: [fp32("Y", [16])],
  }),

  reshaped("of a script", "reshaped_script", fp32("X", [2, 16]), { outputs: [fp32("Y", [2, 2, 8])] }),
  reshaped("of a script, to no dims", "reshaped_to_none", fp32("X", [3, 1]), { outputs: [fp32("Y", [3, 1])] }),
  reshaped("of a script, with a variable dim", "reshaped_variable", fp32("X", [2, 16]), {
    outputs: [fp32("Y", [2, 16])],
  }),
  reshaped("of a script that answers another rank", "reshaped_open", fp32("X", [2, 3]), {
    tag: "ExecutionFailed",
    error: "output 'Y' of model 'reshaped_open': FP32[2,3], declared as FP32[-1]",
  }),
  reshaped("of an ensemble", "reshaped_ensemble", fp32("X", [2, 16]), { outputs: [fp32("Y", [2, 2, 8])] }),
  reshaped("of an ensemble without batching", "reshaped_without_batch", fp32("X", [16]), {
    outputs: [fp32("Y", [2, 8])],
  }),
  reshaped("of an ensemble and of its step", "reshaped_for_reshaped", fp32("X", [2, 4, 4]), {
    outputs: [fp32("Y", [2, 4, 4])],
  }),
  ...["reshaped_script", "reshaped_ensemble"].map((model) =>
    reshaped(`callers of '${model}' have its dims`, model, fp32("X", [1, 4, 4]), {
      tag: "InvalidRequest",
      error: part(`unexpected shape for input 'X' for model '${model}'. Expected [-1,16], got [1,4,4]. NOTE: `),
    }),
  ),
  answer("a step's sequence_id of another type", "sequence_wrong_id", fp32("X", [1, 1]), {
    ...refused(
      "in ensemble 'sequence_wrong_id', expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
    ),
  }),
  answer("a step's sequence_end of another type", "sequence_wrong_flag", fp32("X", [1, 1]), {
    ...refused("in ensemble 'sequence_wrong_flag', expect parameter 'sequence_end' to be TRITONSERVER_PARAMETER_BOOL"),
  }),
]

interface ParameterCase {
  readonly name: string
  readonly model: string
  readonly parameters: Parameters
  readonly expected: Parameters
}

const unset = { sequence_id: 0n, sequence_start: false, sequence_end: false }

const given = { sequence_id: 5n, sequence_start: true }

const parameterCases: ReadonlyArray<ParameterCase> = [
  { name: "no sequence", model: "sequence", parameters: {}, expected: unset },
  { name: "no other parameter", model: "sequence", parameters: { priority: 1n }, expected: unset },
  { name: "its sequence", model: "sequence", parameters: given, expected: { ...unset, ...given } },
  {
    name: "the end of a sequence with a name",
    model: "sequence",
    parameters: { sequence_id: "five", sequence_end: true },
    expected: { ...unset, sequence_id: "five", sequence_end: true },
  },
  {
    name: "the sequence that a step sets, as later steps have it",
    model: "sequence_of_step",
    parameters: { sequence_id: 5n, sequence_end: true },
    expected: {
      sequence_id: 7n,
      sequence_start: true,
      sequence_end: false,
      other: "mine",
      told: "sequence_id=7 sequence_end=false sequence_start=true",
    },
  },
  {
    name: "a step that is an ensemble adds no sequence for later ones",
    model: "sequence_of_ensemble",
    parameters: {},
    expected: { ...unset, told: "" },
  },
  {
    name: "the response parameters of a model that a script calls by its name",
    model: "reads_parameters",
    parameters: {},
    expected: { heard: "mine 7" },
  },
]

const requestOf = ({ model, parameters }: ParameterCase) => ({ model, inputs: [fp32("X", [1, 1])], parameters })

const json = (parameters: Parameters): string =>
  JSON.stringify(parameters, (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value))

const parametersHttp = (one: ParameterCase): HttpCase =>
  http(
    `parameters of a response: ${one.name}`,
    {
      path: `/v2/models/${one.model}/infer`,
      body: `{"parameters":${json(one.parameters)},"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[0]}]}`,
    },
    { status: 200, body: part(`"model_version":"1","parameters":${json(one.expected)},"outputs"`) },
    on("C21", "C37"),
  )

const message = (value: Parameters[string]) => {
  if (typeof value === "boolean") return { bool_param: value }
  return typeof value === "string" ? { string_param: value } : { int64_param: String(value) }
}

const parametersGrpc = (one: ParameterCase): GrpcCase => ({
  ...on("C21", "C37"),
  name: `parameters of a response: ${one.name}`,
  call: { chunks: [encode(requestOf(one), "gRPC raw")] },
  expected: {
    code: 0,
    shows: {
      parameters: Object.fromEntries(Object.entries(one.expected).map(([name, value]) => [name, message(value)])),
    },
  },
})

const { modelConfig } = GRPCInferenceService.method

/** Whether each of them is decoupled. */
const policies = [
  ["sequence", false],
  ["streaming", true],
] as const

export const storedEnsemblesHttp: ReadonlyArray<HttpCase> = [
  ...parameterCases.map(parametersHttp),
  ...policies.map(([model, decoupled]) =>
    http(
      `ensemble: the transaction policy of '${model}'`,
      { path: `/v2/models/${model}/config` },
      { status: 200, body: part(`"model_transaction_policy":{"decoupled":${decoupled}}`) },
      on("C4", "C37"),
    ),
  ),
  http(
    "ensemble: its sequence in generate",
    { path: "/v2/models/sequence/generate", body: '{"X":3}' },
    {
      status: 200,
      shows: { model_name: "sequence", Y: 3, sequence_id: 0, sequence_start: false, sequence_end: false },
    },
    on("C5", "C37"),
  ),
]

export const storedEnsemblesGrpc: ReadonlyArray<GrpcCase> = [
  ...parameterCases.map(parametersGrpc),
  ...policies.map(([model, decoupled]) =>
    rpc(
      `ensemble: the transaction policy of '${model}'`,
      modelConfig,
      { name: model },
      { code: 0, shows: { config: { model_transaction_policy: { decoupled } } } },
      on("C4", "C37"),
    ),
  ),
  {
    ...on("C26", "C37"),
    name: "ModelStreamInfer: each response of a decoupled ensemble has the sequence",
    call: {
      method: "ModelStreamInfer",
      chunks: [
        encode({ model: "streaming", inputs: [fp32("X", [1, 1], 2)], parameters: { sequence_id: 5n } }, "gRPC stream"),
      ],
    },
    expected: { code: 0, replies: [2, 3].map(() => /"sequence_id":\{"int64Param":"5"\}/) },
    output: ModelStreamInferResponseSchema,
  },
  {
    ...on("C26", "A11.io.reshape"),
    name: "ModelStreamInfer: the reshape of a decoupled script",
    call: {
      method: "ModelStreamInfer",
      chunks: [encode({ model: "reshaped_stream", inputs: [fp32("X", [1, 16])] }, "gRPC stream")],
    },
    expected: { code: 0, replies: [/"shape":\["1","2","8"\]/] },
    output: ModelStreamInferResponseSchema,
  },
]
