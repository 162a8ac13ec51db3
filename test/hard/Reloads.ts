/** A model that is replaced and unloaded all the time, beside requests to it and to another model. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { plus, RepositoryFixture } from "../fixtures/repository.ts"
import { type Attack, megabytes, repeated } from "./Attack.ts"
import { beside, http } from "./Callers.ts"
import { Target } from "./Target.ts"

const request = JSON.stringify({ inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }] })

const start = async (): Promise<Target> => {
  const models = new RepositoryFixture(mkdtempSync(join(tmpdir(), "nereid-hard-")))
  models.adding("kept", 1, 1)
  models.adding("passing", 1, 1)
  const control = ["--model-control-mode=explicit", "--load-model=kept"]
  return Target.serve([`--model-repository=${models.path}`, ...control], {}, models.path)
}

export const reloads: Attack = {
  name: "models that are reloaded, loaded and unloaded under traffic",
  seconds: 120,
  shortTest: "test/programs/model-repository-soak.test.ts",
  start,
  run: async (target, { seconds }) => {
    const models = new RepositoryFixture(target.folder ?? "")
    const post = async (path: string, body = "") => {
      const { status, text } = await http(target.http, path, body)
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
      return text
    }
    const round = async (amount: number) => {
      models.write("kept/1/model.onnx", plus(1 + (amount % 2)))
      const [, ...answers] = await Promise.all([
        post("repository/models/kept/load"),
        ...Array.from({ length: 8 }, () => post("models/kept/infer", request)),
      ])
      for (const answer of answers) if (!/"data":\[[12]\]/.test(answer)) throw new Error(answer)
      await post("repository/models/passing/load")
      await Promise.all([post("models/passing/infer", request), post("repository/models/passing/unload")]).catch(
        (error: unknown) => {
          if (!/Request for unknown model|is not ready/.test(String(error))) throw error
        },
      )
    }
    await beside(target, () => repeated(Math.min(seconds / 2, 20), round))
    const before = await target.collected()
    let rounds = 0
    const answers = await beside(target, async () => (rounds = await repeated(seconds, round)))
    const after = await target.collected()
    if (after.heap > before.heap * 1.3) throw new Error(`the heap grew to ${megabytes(after.heap)}`)
    const grown = megabytes(after.resident - before.resident)
    return `${rounds} rounds, ${answers} requests of another model answered, memory ${grown} above the start`
  },
}
