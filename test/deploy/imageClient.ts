/** Run in the network of an image: sends a picture over both protocols, and prints the logits of each as JSON. */
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { Digits } from "../../examples/digits/contract.ts"

const picture = Float32Array.from({ length: 28 * 28 }, (_, index) => (index % 28 === 14 ? 1 : 0))
const logits: Array<ReadonlyArray<number>> = []
for (const url of ["http://127.0.0.1:8000", "grpc://127.0.0.1:8001"]) {
  await using client = await Client.connect(Digits, { url })
  const outputs = await client.infer({ image: Tensor.make("FP32", [1, 28, 28], picture) })
  logits.push(Array.from(outputs.logits.data))
}
console.log(JSON.stringify(logits))
