/** Models of the cases about tensors. */

const tensor = (side: "input" | "output", name: string, kind: string, more: string) =>
  `${side} { name: "${name}" data_type: TYPE_${kind} ${more} }`

/** A model that answers its inputs. */
const identity = (kind: string, dims: string, more = "") => ({
  file: "triton_identity",
  config: `${tensor("input", "INPUT0", kind, `dims: ${dims}`)} ${tensor("output", "OUTPUT0", kind, `dims: ${dims}`)} ${more}`,
})

/** Two elements of each datatype; those of FP16 are their bits. */
export const kinds: ReadonlyArray<readonly [datatype: string, data: ReadonlyArray<boolean | number | string>]> = [
  ["BOOL", [true, false]],
  ["UINT8", [0, 255]],
  ["UINT16", [0, 65_535]],
  ["UINT32", [1, 4_294_967_295]],
  ["UINT64", [1, 2]],
  ["INT8", [-128, 127]],
  ["INT16", [-1, 300]],
  ["INT32", [-5, 5]],
  ["INT64", [-1, 7]],
  ["FP16", [0x3c00, 0xc000]],
  ["FP32", [1.5, -2]],
  ["FP64", [0.1, 1e300]],
  ["BYTES", ["naïve 🌊", ""]],
]

const everyKind = kinds
  .map(([datatype]) => (datatype === "BYTES" ? "STRING" : datatype))
  .map(
    (kind, index) =>
      `${tensor("input", `INPUT${index}`, kind, "dims: -1 optional: true")} ${tensor("output", `OUTPUT${index}`, kind, "dims: -1")}`,
  )
  .join("\n")

const optional = [0, 1].map((index) => tensor("input", `INPUT${index}`, "INT32", "dims: 1 optional: true")).join("\n")

const shaped = (side: "input" | "output") =>
  tensor(side, `${side.toUpperCase()}0`, "INT32", "dims: 4 reshape { shape: [2, 2] }")

const views = `${tensor("input", "IN", "INT32", "dims: [2, 4]")} ${tensor("output", "TRANSPOSED", "INT32", "dims: [4, 2]")}
  ${tensor("output", "EVERY_SECOND", "INT32", "dims: [2, 2]")} ${tensor("output", "RESHAPED", "INT32", "dims: [8]")}`

const batching =
  "max_batch_size: 64 dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 12000000 }"

const warmUp = `instance_group { count: 2 } model_warmup { name: "w" count: 2
  inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }`

export const tensorModels = {
  every: { file: "triton_identity", config: everyKind },
  bf16: { ...identity("BF16", "2"), file: "triton_bf16" },
  batched: identity("UINT8", "2", batching),
  optional: {
    file: "triton_optional",
    config: `max_batch_size: 0 ${optional} ${tensor("output", "OUTPUT0", "INT32", "dims: 1")}`,
  },
  views: { file: "triton_views", config: views },
  shaped: { file: "triton_identity", config: `max_batch_size: 2 ${shaped("input")} ${shaped("output")}` },
  multi_file: { file: "triton_imports", config: tensor("output", "OUT", "INT32", "dims: 1") },
  cached: identity("INT32", "1", "response_cache { enable: true }"),
  warm: identity("INT32", "1", warmUp),
}
