/** Calls the add-sub model over gRPC or HTTP: `node examples/add-sub/client.ts [url]`. */
import { Tensor } from "@nereid/core"
import { Client } from "@nereid/client"
import { AddSub } from "./contract.ts"

await using model = await Client.connect(AddSub, { url: process.argv[2] ?? "grpc://localhost:8001" })
const { OUTPUT0, OUTPUT1 } = await model.infer({
  INPUT0: Tensor.make("FP32", [3], Float32Array.of(1, 2, 3)),
  INPUT1: Tensor.make("FP32", [3], Float32Array.of(10, 20, 30)),
})
console.log("sum       ", ...OUTPUT0.data)
console.log("difference", ...OUTPUT1.data)
