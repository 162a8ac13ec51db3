/** `nereid serve` hands its sequences to another process, whose secret it has from an environment variable. */
import { expect, it } from "vitest"
import { Effect } from "effect"
import { repository } from "../fixtures/repository.ts"
import { command, Program } from "../Program.ts"
import { type Scenario, step } from "./Scenario.ts"
import { transports } from "./SequenceCalls.ts"
import { filesOf } from "./SequenceModels.ts"

const model: Scenario = { name: "m", behaviour: "state", maxBatchSize: 4, idle: 60_000_000, steps: [], sizes: {} }

const [, send] = transports(4)[0] ?? []

const serve = async (directory: string, flags: ReadonlyArray<string>, variables: NodeJS.ProcessEnv = {}) => {
  const ports = ["--http-port=0", "--grpc-port=0", "--allow-metrics=false"]
  const args = [command, "serve", `--model-repository=${directory}`, ...ports, ...flags]
  const program = new Program(args, variables)
  const portOf = async (name: string) => Number((await program.match(new RegExp(`${name} at [^:]+:(\\d+)`)))[1])
  return { program, http: await portOf("HTTPService"), grpc: await portOf("GRPCInferenceService") }
}

it("a command with the secret hands its sequences to a server that restricts its repository", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    for (const [file, content] of Object.entries(filesOf(model))) fixture.write(file, content)
    yield* Effect.promise(async () => {
      const other = await serve(fixture.path, ["--http-restricted-api=model-repository:admin-key=s3cret"])
      await using receiver = other.program
      const url = `--hand-over-sequences=http://127.0.0.1:${other.http}`
      const one = await serve(fixture.path, [url], { NEREID_HAND_OVER_HEADER: "admin-key: s3cret" })
      await using sender = one.program
      expect(await send?.(one, "m", [step(7n, "S", 5, 5)])).toEqual([5])
      sender.signal("SIGTERM")
      const { code, output } = await sender.ended
      expect([code, output]).toEqual([0, expect.stringContaining("Handed over 1 sequences of model 'm'")])
      expect(output).not.toContain("s3cret")
      expect(await send?.(other, "m", [step(7n, "E", 2, 7)])).toEqual([7])
      expect(receiver.output).not.toContain("s3cret")
    })
  }).pipe(Effect.scoped, Effect.runPromise))
