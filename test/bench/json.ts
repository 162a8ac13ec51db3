/**
 * The baseline for JSON, run as a child: the models add_sub, glance and mirror, written with only node:http, JSON.parse
 * and JSON.stringify, and without validation.
 */
import { createServer } from "node:http"
import { listen } from "./Listening.ts"
import { report } from "./Reporter.ts"

interface Tensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  readonly data: ReadonlyArray<number>
}

type Model = (inputs: ReadonlyArray<Tensor>) => ReadonlyArray<Tensor>

const output = (name: string, shape: ReadonlyArray<number>, data: ReadonlyArray<number>): Tensor => ({
  name,
  datatype: "FP32",
  shape,
  data,
})

const addSub: Model = ([one, other]) => {
  if (one === undefined || other === undefined) throw new Error("add_sub has two inputs")
  const sum: Array<number> = []
  const difference: Array<number> = []
  for (let index = 0; index < one.data.length; index++) {
    const a = one.data[index] ?? 0
    const b = other.data[index] ?? 0
    sum.push(a + b)
    difference.push(a - b)
  }
  return [output("OUTPUT0", one.shape, sum), output("OUTPUT1", one.shape, difference)]
}

/** The handler of a large tensor has it as floats. */
const floats = ([image]: ReadonlyArray<Tensor>): {
  readonly shape: ReadonlyArray<number>
  readonly data: Float32Array
} => {
  if (image === undefined) throw new Error("there is one input")
  return { shape: image.shape, data: Float32Array.from(image.data) }
}

const glance: Model = (inputs) => [output("first", [1, 1], [...floats(inputs).data.subarray(0, 1)])]

const mirror: Model = (inputs) => {
  const { shape, data } = floats(inputs)
  return [output("image", shape, Array.from(data))]
}

const models: Readonly<Record<string, Model>> = { add_sub: addSub, glance, mirror }

const http = createServer((request, response) => {
  const [, , , name = ""] = (request.url ?? "").split("/")
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const [first] = chunks
    const body = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
    const { inputs } = JSON.parse(body.toString())
    const reply = Buffer.from(JSON.stringify({ model_name: name, model_version: "1", outputs: models[name]?.(inputs) }))
    response.writeHead(200, ["content-type", "application/json", "content-length", String(reply.length)])
    response.end(reply)
  })
})

report({ ports: { grpc: 0, http: await listen(http) } })
