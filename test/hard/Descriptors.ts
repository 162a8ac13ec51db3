/** More connections than the process may have file descriptors, and more than the server accepts. */
import { connect, type Socket } from "node:net"
import { type Attack, until } from "./Attack.ts"
import { beside, expectAnswer } from "./Callers.ts"
import { setLimit } from "./Disks.ts"
import { Target } from "./Target.ts"

/** Opens connections that send nothing, and closes them after `during`. */
const holding = async (ports: ReadonlyArray<number>, count: number, during: () => Promise<void>) => {
  const sockets = Array.from({ length: count }, (_, index): Socket =>
    connect(ports[index % ports.length] ?? 0, "localhost").on("error", () => {}),
  )
  try {
    await during()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

export const exhausted: Attack = {
  name: "600 connections, of which the process has descriptors for about 60",
  seconds: 10,
  start: () => Target.serve(),
  run: async (target) => {
    await expectAnswer(target)
    const before = target.openFiles
    setLimit(target.program.pid, `--nofile=${before + 60}:`)
    const answers = await beside(target, async () => {
      // The callers' connections come first.
      await until("connections of the callers", () => target.openFiles >= before + 5)
      await holding([target.http, target.grpc, target.metrics], 600, async () => {
        await until("no descriptor is left", () => target.openFiles >= before + 55)
      })
      await until("the connections are closed", () => target.openFiles < before + 20)
    })
    setLimit(target.program.pid, "--nofile=1024:")
    await expectAnswer(target)
    return `${answers} requests answered on connections that were open before`
  },
}

export const beyondTheCap: Attack = {
  name: "2,000 connections to ports that accept 100 each",
  seconds: 10,
  start: () => Target.serve(["--max-connections=100"]),
  run: async (target) => {
    const answers = await beside(target, async () => {
      await holding([target.http, target.grpc], 2000, async () => {
        await until("refused connections", async () => (await target.actions("connections")) >= 1700)
      })
    })
    await expectAnswer(target)
    return `${answers} requests answered on connections that were open before`
  },
}
