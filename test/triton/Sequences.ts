/**
 * Runs the scenarios of sequences (test/sequences) against a real Triton. Each scenario has a server, because the
 * variables that hold batches back are read at a load.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { Scenario } from "../sequences/Scenario.ts"
import { sizes, transportsOf } from "../sequences/SequenceCalls.ts"
import { tritonFilesOf } from "../sequences/SequenceModels.ts"
import * as TritonServer from "./TritonServer.ts"

/** The differences of its responses and batches over each transport; none is expected unless the scenario says so. */
export const differences = async (program: string, scenario: Scenario): Promise<ReadonlyArray<string>> => {
  const { name, steps, hold, idle = 0 } = scenario
  const found: Array<string> = []
  for (const [transport, send] of transportsOf(scenario)) {
    const repository = mkdtempSync(join(tmpdir(), "nereid-triton-"))
    for (const [file, content] of Object.entries(tritonFilesOf(scenario))) {
      mkdirSync(dirname(join(repository, file)), { recursive: true })
      writeFileSync(join(repository, file), content)
    }
    const [requests, backlogged] = hold ?? [0, 0]
    process.env["TRITONSERVER_DELAY_SCHEDULER"] = String(requests)
    process.env["TRITONSERVER_BACKLOG_DELAY_SCHEDULER"] = String(backlogged)
    await using server = await TritonServer.start(program, repository, [])
    const answers: Array<unknown> = []
    if (hold === undefined) {
      for (const step of steps) {
        // Its reaper looks for idle sequences from time to time.
        if (step.afterExpiry === true) await setTimeout(idle / 1000 + 1000)
        answers.push(...(await send(server, "m", [step])))
      }
    } else answers.push(...(await send(server, "m", steps)))
    for (const [index, { expected }] of steps.entries()) {
      if (answers[index] !== expected) {
        found.push(`${name}, ${transport}, step ${index}: expected ${expected}, got ${String(answers[index])}`)
      }
    }
    const counted = await countedSizes(server, JSON.stringify(scenario.sizes))
    if (counted !== JSON.stringify(scenario.sizes)) {
      found.push(`${name}, ${transport}: expected batches ${JSON.stringify(scenario.sizes)}, got ${counted}`)
    }
    rmSync(repository, { recursive: true })
  }
  return found
}

/** Triton counts a batch after its responses. */
const countedSizes = async (server: TritonServer.TritonServer, expected: string): Promise<string> => {
  let counted = ""
  for (const end = performance.now() + 3000; counted !== expected && performance.now() < end;) {
    counted = JSON.stringify(await sizes(server, "m"))
  }
  return counted
}
