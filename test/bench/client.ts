/** Our client, run as a child and measured: add_sub over gRPC, typed, with promises. */
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { AddSub } from "../../examples/models.ts"
import * as Callers from "./Callers.ts"
import { report } from "./Reporter.ts"
import { vectors } from "./Request.ts"

report({
  run: async ({ port, concurrency, seconds }) => {
    await using model = await Client.connect(AddSub, { url: `grpc://127.0.0.1:${port}` })
    const [one, other] = vectors.map(({ data }) => Tensor.make("FP32", [16], data))
    if (one === undefined || other === undefined) throw new Error("add_sub has two inputs. This is a bug.")
    return await Callers.run(concurrency, seconds, async () => {
      const { OUTPUT0, OUTPUT1 } = await model.infer({ INPUT0: one, INPUT1: other })
      if (OUTPUT0.data[0] !== 100 || OUTPUT1.data[0] !== -100)
        throw new Error(`wrong: ${OUTPUT0.data}, ${OUTPUT1.data}`)
    })
  },
})
