/** A wall clock that jumps by an hour, by libfaketime where it is installed. */
import { existsSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Attack, repeated, Skipped, sleep } from "./Attack.ts"
import { beside } from "./Callers.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import { Target } from "./Target.ts"

const libraries = ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)

/** Moves the wall clock of the server with this folder to so many hours from now. */
const setClock = (folder: string, hours: number) =>
  writeFileSync(join(folder, "clock"), `${hours < 0 ? "" : "+"}${hours}h`)

const start = async (): Promise<Target> => {
  const library = process.env["NEREID_LIBFAKETIME"] ?? libraries.find((path) => existsSync(path))
  if (library === undefined) throw new Skipped("there is no libfaketime")
  const folder = mkdtempSync(join(tmpdir(), "nereid-hard-"))
  setClock(folder, 0)
  const variables = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: join(folder, "clock"),
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  }
  return Target.serve([], variables, folder)
}

export const jumps: Attack = {
  name: "a wall clock that jumps by an hour",
  seconds: 60,
  start,
  run: async (target, { seconds }) => {
    const session = GrpcCalls.open(target.grpc)
    let rounds = 0
    const answers = await beside(target, () =>
      repeated(seconds, async (round) => {
        const patient = GrpcCalls.call(session, GrpcCalls.slowRequest(100), "60S")
        const impatient = GrpcCalls.call(session, GrpcCalls.slowRequest(60_000), "200m")
        await sleep(20)
        setClock(target.folder ?? "", [1, -1, 0][round % 3] ?? 0)
        const answered = await patient
        if (answered.status !== "0") throw new Error(`a call in time failed: ${answered.status} ${answered.message}`)
        const expired = await impatient
        if (expired.status !== "4") throw new Error(`a call past its deadline ended with ${expired.status}`)
        rounds += 1
      }),
    )
    session.destroy()
    return `${rounds} jumps, ${answers} requests answered`
  },
}
