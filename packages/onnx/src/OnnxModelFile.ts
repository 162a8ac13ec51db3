/** The file of an ONNX model and the options of its sessions, in the words of Triton's configuration. */
import type { ModelFile } from "@nereid/core/internal/running/ModelFile"
import { fileURLToPath } from "node:url"
import { resolve } from "node:path"
import type { OnnxOptions } from "./Instances.ts"
import * as Provider from "./Provider.ts"
import type { GraphOptimization } from "./SessionProtocol.ts"

/** Triton's graph levels. `layout` is between two of them. */
const graphLevels: Readonly<Record<GraphOptimization, number>> = {
  all: 0,
  layout: 0,
  basic: -1,
  extended: 1,
  disabled: 2,
}

export const make = (options: OnnxOptions): ModelFile => {
  const { file, graphOptimization = "all", intraOpThreads = 1, interOpThreads = 1, memoryArena = true } = options
  const providers = providersOf(options)
  return {
    path: file instanceof URL ? fileURLToPath(file) : resolve(file),
    parameters: {
      ...(intraOpThreads === 1 ? {} : { intra_op_thread_count: String(intraOpThreads) }),
      ...(interOpThreads === 1 ? {} : { execution_mode: "1", inter_op_thread_count: String(interOpThreads) }),
      ...(memoryArena ? {} : { enable_mem_arena: "0" }),
    },
    graphLevel: graphLevels[graphOptimization],
    gpuAccelerators: providers.includes("tensorrt") ? ["tensorrt"] : [],
    unsupportedOptions: [
      ...(providers.includes("webgpu") ? ["the provider webgpu"] : []),
      ...(graphOptimization === "layout" ? ["graphOptimization: layout"] : []),
      ...(options.restart === undefined ? [] : ["restart"]),
    ],
  }
}

const providersOf = ({ providers = ["cpu"], instances }: OnnxOptions): ReadonlyArray<Provider.ProviderName> => {
  const groups = typeof instances === "object" ? instances : [{}]
  return groups.flatMap((group) => (group.providers ?? providers).map(Provider.name))
}
