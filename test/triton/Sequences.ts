/**
 * Runs the scenarios of sequences (test/sequences) against a real Triton. Each scenario has a server, because the
 * variables that hold batches back are read at a load.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Scenario } from "../sequences/Scenario.ts"
import { overStream, sizes, transports } from "../sequences/SequenceCalls.ts"
import { configOf, pythonOf } from "../sequences/SequenceModels.ts"
import * as TritonServer from "./TritonServer.ts"

/** The differences of its responses and batches over each transport; none is expected unless the scenario says so. */
export const differences = async (program: string, scenario: Scenario): Promise<ReadonlyArray<string>> => {
  const { name, steps, hold, maxBatchSize } = scenario
  const found: Array<string> = []
  const ways = hold === undefined ? transports(maxBatchSize) : [["gRPC stream", overStream(maxBatchSize > 0)] as const]
  for (const [transport, send] of ways) {
    const repository = mkdtempSync(join(tmpdir(), "nereid-triton-"))
    mkdirSync(join(repository, "m", "1"), { recursive: true })
    writeFileSync(join(repository, "m", "config.pbtxt"), `backend: "python"\n${configOf(scenario)}`)
    writeFileSync(join(repository, "m", "1", "model.py"), pythonOf(scenario))
    const [requests, backlogged] = hold ?? [0, 0]
    process.env["TRITONSERVER_DELAY_SCHEDULER"] = String(requests)
    process.env["TRITONSERVER_BACKLOG_DELAY_SCHEDULER"] = String(backlogged)
    await using server = await TritonServer.start(program, repository, [])
    const answers: Array<unknown> = []
    if (hold === undefined) for (const step of steps) answers.push(...(await send(server, "m", [step])))
    else answers.push(...(await send(server, "m", steps)))
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
