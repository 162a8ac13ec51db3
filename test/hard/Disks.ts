/** Disks that are full: of the log, of the trace, and of what a load writes. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { plus } from "../fixtures/repository.ts"
import { type Attack, repeated, Skipped } from "./Attack.ts"
import { beside, expectAnswer, http } from "./Callers.ts"
import { Target } from "./Target.ts"

/** Changes a limit of a process that runs, by util-linux' prlimit. */
export const setLimit = (pid: number, limit: string): void => {
  const { error, status, stderr } = spawnSync("prlimit", [`--pid=${pid}`, limit], { encoding: "utf8" })
  if (error !== undefined) throw new Skipped("there is no prlimit")
  if (status !== 0) throw new Error(`prlimit: ${stderr}`)
}

/** A load whose model comes with the request, which the server writes to its temporary folder. */
const load = ({ http: port }: Target) => {
  const config = JSON.stringify({ backend: "onnxruntime" })
  const file = Buffer.from(plus(1)).toString("base64")
  return http(
    port,
    "repository/models/sent/load",
    JSON.stringify({ parameters: { config, "file:1/model.onnx": file } }),
  )
}

const flags = [
  "--log-file=/dev/full",
  "--log-verbose=1",
  "--trace-config=triton,file=/dev/full",
  "--trace-config=level=TIMESTAMPS",
  "--trace-config=rate=1",
  "--model-control-mode=explicit",
]

export const full: Attack = {
  name: "no space for the log, the trace and the files of a load",
  seconds: 30,
  start: async () => {
    if (!existsSync("/dev/full")) throw new Skipped("there is no /dev/full")
    const models = mkdtempSync(join(tmpdir(), "nereid-hard-"))
    return Target.serve([...flags, `--model-repository=${models}`], {}, models)
  },
  run: async (target, { seconds }) => {
    setLimit(target.program.pid, "--fsize=0:")
    let refused = 0
    const answers = await beside(target, () =>
      repeated(seconds, async () => {
        const { status, text } = await load(target)
        if (status === 200) throw new Error("a load that cannot write its files was answered with 200")
        if (!text.startsWith('{"error":"')) throw new Error(`no error: ${status} ${text}`)
        refused += 1
      }),
    )
    setLimit(target.program.pid, "--fsize=unlimited:")
    const { status, text } = await load(target)
    if (status !== 200) throw new Error(`with space, a load was answered with ${status}: ${text}`)
    await expectAnswer(target)
    return `${answers} requests answered, ${refused} loads refused, then loaded`
  },
}
