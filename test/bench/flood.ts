/** A caller with many requests in flight on one connection, run as a child: the neighbour of fairness.ts. */
import * as ClosedLoop from "@nereid/bench/internal/load/ClosedLoop"
import * as Lane from "@nereid/bench/internal/load/Lane"
import { setPriority } from "node:os"
import * as Measured from "./Measured.ts"
import { report } from "./Reporter.ts"
import * as Request from "./Request.ts"
import * as RequestLoad from "./RequestLoad.ts"

// The caller that is measured has the same core, and must not wait for this one there.
setPriority(19)

const [model = ""] = process.argv.slice(2)
if (!Request.isModelName(model)) throw new Error(`there is no model ${model}`)

report({
  run: async ({ port, concurrency, seconds }) => {
    const load = RequestLoad.unary(model, concurrency)
    const target = RequestLoad.target({ ports: { grpc: port, http: 0 } }, load, undefined)
    const lanes = await Lane.openAll(target, 1)
    try {
      return Measured.of(await ClosedLoop.run(lanes, { concurrency, seconds, patience: 5000 }))
    } finally {
      for (const lane of lanes) lane.close()
    }
  },
})
