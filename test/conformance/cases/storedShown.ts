/** The metadata and the configurations of models in a repository, as both protocols show them. */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type Claim, type GrpcCase, type HttpCase, http, rpc } from "../Case.ts"
import { on, part } from "./stored.ts"

const { method } = GRPCInferenceService

/** Metadata or configuration of a model, over both protocols. */
interface Shown {
  readonly name: string
  readonly of: "metadata" | "config"
  readonly model: string
  readonly version?: string
  readonly shows: Readonly<Record<string, unknown>>
  readonly proves: ReadonlyArray<Claim>
}

const io = (name: string, datatype: string, ...shape: ReadonlyArray<number>) => ({ name, datatype, shape })

const showing = (
  of: Shown["of"],
  name: string,
  model: string,
  shows: Shown["shows"],
  ...proves: ReadonlyArray<Claim>
): Shown => ({ name, of, model, shows, proves })

const shown: ReadonlyArray<Shown> = [
  showing(
    "metadata",
    "completed from the file, with a batch dimension",
    "bare",
    {
      name: "bare",
      versions: ["1"],
      platform: "onnxruntime_onnx",
      inputs: [io("X", "FP32", -1, 1)],
      outputs: [io("Y", "FP32", -1, 1)],
    },
    "C35",
    "A1.metadata.batch",
    "A1.metadata.platform",
    "A11.completion.absent",
    "A11.completion.tensors",
  ),
  showing(
    "metadata",
    "every version that is there",
    "specific",
    { versions: ["1", "3"] },
    "C34",
    "A1.metadata.versions",
    "A6.version.specific",
  ),
  {
    ...showing("metadata", "of a version", "specific", { versions: ["1"] }, "C34", "A1.metadata.version"),
    version: "1",
  },
  ...(
    [
      ["1", -1, 3, "INT64"],
      ["2", 2, undefined, "FP32"],
    ] as const
  ).map(([version, first, second, datatype]) => ({
    ...showing(
      "metadata",
      `of version ${version}, by its own file`,
      "unlike",
      { inputs: [io("X", datatype, ...(second === undefined ? [first] : [first, second]))] },
      "C35",
      "A11.completion.version",
    ),
    version,
  })),
  showing("metadata", "a scalar has one element", "scalar", { inputs: [io("X", "INT32", 1)] }, "C35"),
  showing("metadata", "without a batch", "fixed", { inputs: [io("X", "FP32", 2, 3)] }, "C3", "A1.metadata.no-batch"),
  showing(
    "metadata",
    "dims before a reshape",
    "reshaped",
    { inputs: [io("X", "FP32", -1, 4, -1)], outputs: [io("Y", "FP32", -1, 1, 4, -1)] },
    "C3",
    "A1.metadata.reshape",
  ),
  showing(
    "metadata",
    "strings are BYTES",
    "strings",
    { inputs: [io("X", "BYTES", -1, -1)] },
    "C3",
    "A1.metadata.strings",
  ),
  showing("metadata", "a script", "script", { platform: "nereid" }, "C3", "A1.metadata.platform"),
  showing("metadata", "an ensemble", "in_steps", { platform: "ensemble" }, "C3", "A1.metadata.platform"),
  showing(
    "config",
    "completed from the file",
    "bare",
    {
      name: "bare",
      platform: "onnxruntime_onnx",
      backend: "onnxruntime",
      version_policy: { latest: { num_versions: 1 } },
      max_batch_size: 4,
      input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
      output: [{ name: "Y", data_type: "TYPE_FP32", dims: [1] }],
      instance_group: [{ name: "bare", count: 2, gpus: [], kind: "KIND_CPU" }],
      default_model_filename: "model.onnx",
      dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 0 },
    },
    "C35",
    "A1.config.onnx-group",
    "A11.completion.absent",
    "A11.completion.backend",
    "A11.completion.tensors",
    "A11.completion.batch",
  ),
  showing(
    "config",
    "a listed group",
    "fixed",
    { max_batch_size: 0, instance_group: [{ name: "fixed_0", count: 1, gpus: [], kind: "KIND_CPU" }] },
    "C4",
    "A11.completion.no-batch",
  ),
  showing(
    "config",
    "a scalar is reshaped to no dims",
    "scalar",
    { input: [{ dims: [1], reshape: { shape: [] } }] },
    "C35",
    "A11.completion.scalar",
  ),
  showing("config", "labels", "labelled", { output: [{ label_filename: "labels.txt" }] }, "C4"),
  showing(
    "config",
    "a ragged batch",
    "ragged",
    { input: [{ allow_ragged_batch: true }], batch_input: [{ kind: "BATCH_ACCUMULATED_ELEMENT_COUNT" }] },
    "C4",
  ),
  {
    ...showing(
      "config",
      "of a version",
      "specific",
      { version_policy: { specific: { versions: [3, 1, 7] } } },
      "C34",
      "A1.config.version",
    ),
    version: "3",
  },
]

const shownHttp = ({ name, of, model, version, shows, proves }: Shown): HttpCase => {
  const path = version === undefined ? model : `${model}/versions/${version}`
  const request = { path: `/v2/models/${path}${of === "config" ? "/config" : ""}` }
  return http(`${of}: ${name}`, request, { status: 200, shows }, on(...proves))
}

const shownGrpc = ({ name, of, model, version = "", shows, proves }: Shown): GrpcCase =>
  of === "config"
    ? rpc(name, method.modelConfig, { name: model, version }, { code: 0, shows: { config: shows } }, on(...proves))
    : rpc(name, method.modelMetadata, { name: model, version }, { code: 0, shows }, on(...proves))

/** In the digits of the file, which no number of JavaScript has. */
const digits = "9007199254740993"

const exact: readonly [HttpCase, GrpcCase] = [
  http(
    "configuration: all digits of its integers",
    { path: "/v2/models/integers/config" },
    { status: 200, body: part(`"default_timeout_microseconds":${digits},`) },
    on("C4", "A1.config.integers"),
  ),
  rpc(
    "all digits of its integers",
    method.modelConfig,
    { name: "integers" },
    { code: 0, replies: [part(`"defaultTimeoutMicroseconds":"${digits}"`)] },
    on("C4", "A1.config.integers"),
  ),
]

export const storedShownHttp: ReadonlyArray<HttpCase> = [...shown.map(shownHttp), exact[0]]

export const storedShownGrpc: ReadonlyArray<GrpcCase> = [...shown.map(shownGrpc), exact[1]]
