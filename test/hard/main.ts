/**
 * Attacks a server for longer than a test may take, each time with a server of its own. Prints a table, and exits
 * with 1 if the server fails.
 *
 *   npm run test:hard                          all attacks, for their whole time: about an hour and a half
 *   npm run test:hard -- --seconds=60          at most so many seconds for each attack
 *   npm run test:hard -- --seed=7 --only=soak  random choices by another seed; attacks whose name contains a text
 */
import * as Flags from "../Flags.ts"
import { Skipped } from "./Attack.ts"
import { attacks } from "./attacks.ts"

const values = Flags.read("npm run test:hard -- [flags]", {
  seconds: { type: "string", default: "3600", description: "At most so many seconds for each attack." },
  seed: {
    type: "string",
    default: String(Math.floor(Date.now() / 86_400_000)),
    description: "Of random choices; by default another one each day.",
  },
  only: { type: "string", default: "", description: "Only attacks whose name contains this text." },
})
const seed = Number(values.seed)

/** The result, and how the table marks it. */
const resultOf = async (attack: (typeof attacks)[number]): Promise<readonly [string, string]> => {
  try {
    await using target = await attack.start()
    const seconds = Math.min(attack.seconds, Number(values.seconds))
    return ["ok", await attack.run(target, { seconds, seed })]
  } catch (error) {
    if (error instanceof Skipped) return ["skipped", error.message]
    process.exitCode = 1
    return ["FAILED", error instanceof Error ? error.message : String(error)]
  }
}

const chosen = attacks.filter(({ name }) => name.includes(values.only))
if (chosen.length === 0) throw new Error(`no attack has "${values.only}" in its name`)
console.log(`seed ${seed}`)
for (const attack of chosen) {
  const startedAt = performance.now()
  const [mark, result] = await resultOf(attack)
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(`${mark.padEnd(8)} ${String(seconds).padStart(5)} s  ${attack.name}: ${result}`)
}
