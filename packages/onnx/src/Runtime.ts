/**
 * Test of ONNX Runtime on this machine, for `nereid check`: runs a graph of two nodes on the calling thread. Models run
 * in worker threads instead (WorkerInstance.ts).
 */
import { create, toBinary } from "@bufbuild/protobuf"
import {
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  TensorProto_DataType as ElementType,
  ValueInfoProtoSchema,
} from "@nereid/protocol/onnx"
import * as RuntimePackage from "./RuntimePackage.ts"

export interface RuntimeCheck {
  readonly version: string
  /** Names of the execution providers of this build, whether or not the machine has their device. */
  readonly providers: ReadonlyArray<string>
  /** Element-wise sum of the two lists. */
  readonly sum: ReadonlyArray<number>
  readonly difference: ReadonlyArray<number>
}

/** Adds and subtracts on the CPU. Rejects if the runtime cannot be loaded (RuntimeNotInstalled) or does not run. */
export const addSub = async (one: ReadonlyArray<number>, other: ReadonlyArray<number>): Promise<RuntimeCheck> => {
  const { InferenceSession, Tensor, env, listSupportedBackends } = await RuntimePackage.load()
  const session = await InferenceSession.create(graph(), { executionProviders: ["cpu"] })
  const tensor = (data: ReadonlyArray<number>) => new Tensor("float32", Float32Array.from(data), [data.length])
  try {
    const { SUM, DIFFERENCE } = await session.run({ A: tensor(one), B: tensor(other) })
    const elements = (output: typeof SUM) => (output?.data instanceof Float32Array ? [...output.data] : [])
    return {
      version: env.versions.node ?? env.versions.common,
      providers: listSupportedBackends().map(({ name }) => name),
      sum: elements(SUM),
      difference: elements(DIFFERENCE),
    }
  } finally {
    await session.release()
  }
}

const graph = (): Uint8Array => {
  const vector = (name: string) =>
    create(ValueInfoProtoSchema, {
      name,
      type: {
        value: {
          case: "tensorType",
          value: {
            elemType: ElementType.FLOAT,
            shape: { dim: [{ value: { case: "dimParam", value: "n" } }] },
          },
        },
      },
    })
  const node = (opType: string, output: string) =>
    create(NodeProtoSchema, { opType, input: ["A", "B"], output: [output] })
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: 8n,
      opsetImport: [{ domain: "", version: 17n }],
      graph: create(GraphProtoSchema, {
        name: "add_sub",
        node: [node("Add", "SUM"), node("Sub", "DIFFERENCE")],
        input: [vector("A"), vector("B")],
        output: [vector("SUM"), vector("DIFFERENCE")],
      }),
    }),
  )
}
