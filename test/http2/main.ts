/**
 * Damages a million connections of `@nereid/http2`: `npm run test:http2`, with other seeds each time. Prints the seed
 * of a connection that fails, and exits with 1. Mutations.test.ts of the package runs 50,000 in each `npm test`.
 */
import { parseArgs } from "node:util"
import { run } from "../../packages/http2/src/connection/Mutations.fixture.ts"

const { values } = parseArgs({
  options: {
    connections: { type: "string", default: "1000000" },
    /** The first seed; the others follow it. */
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
})
const connections = Number(values.connections)
const first = Number(values.seed)
if (!(connections >= 1) || !Number.isInteger(first)) throw new Error("--connections and --seed are numbers")

let failed = 0
for (let seed = first; seed < first + connections; seed++) {
  try {
    if (run(seed | 0)) failed += 1
  } catch (error) {
    console.error(`The connection of seed ${seed | 0} has failed:`, error)
    process.exit(1)
  }
}
const memory = Math.round(process.memoryUsage.rss() / 2 ** 20)
console.log(
  `${connections} damaged connections from seed ${first}: ${failed} were ended, none failed; ${memory} MiB of memory`,
)
