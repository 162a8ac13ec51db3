/** Worker threads that die, throw, hang or run out of memory, beside the requests of another model. */
import { type Attack, repeated, until } from "./Attack.ts"
import { beside, http } from "./Callers.ts"
import { Target } from "./Target.ts"

const quick = ["exit 3", "throw it", "fail ExecutionFailed", "die of it"]

/** A thread that runs out of memory takes many seconds to do so. */
const deathsWithin = (seconds: number) => (seconds < 10 ? quick : [...quick, "heap"])

export const deadThreads: Attack = {
  name: "a model whose threads die, beside another model",
  seconds: 120,
  start: () => Target.serve(),
  run: async (target, { seconds, seed }) => {
    const command = async (text: string) => {
      const inputs = [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: [text] }]
      return (await http(target.http, "models/command/infer", JSON.stringify({ inputs }))).status
    }
    const works = () => until("the model works again", async () => (await command("echo a")) === 200)
    await works()
    const deaths = deathsWithin(seconds)
    let died = 0
    const answers = await beside(target, () =>
      repeated(seconds, async (round) => {
        const status = await command(deaths[(seed + round) % deaths.length] ?? "")
        if (status < 500) throw new Error(`a request to a thread that died was answered with ${status}`)
        died += 1
        await works()
      }),
    )
    return `${died} deaths, ${answers} requests of the other model answered`
  },
}
