/** Clients that make the server hold memory: bodies that do not end, and responses that they do not read. */
import { connect, type Socket } from "node:net"
import { type Attack, megabytes, type Run, until } from "./Attack.ts"
import { expectAnswer, zeros } from "./Callers.ts"
import { Target } from "./Target.ts"

/** The number of clients, and the limit that a few of them exceed. */
const clients = 40
const flags = ["--max-in-flight-size=200000000"]

const open = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "localhost", () => resolve(socket))
    socket.on("error", reject)
  })

const post = (body: string, length = body.length) =>
  `POST /v2/models/zeros/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n${body}`

/** Ends the clients. In a whole run, also waits until the server is about as small as before. */
const recovered = async (target: Target, sockets: ReadonlyArray<Socket>, before: number, { seconds }: Run) => {
  for (const socket of sockets) socket.destroy()
  await expectAnswer(target)
  if (seconds < 2) return
  await until("memory is back", async () => (await target.collected()).resident < before + 50e6)
}

export const incompleteBodies: Attack = {
  name: `${clients} connections with 19 of 20 MiB each, 200 MB allowed`,
  seconds: 10,
  start: () => Target.serve(flags),
  run: async (target, run) => {
    const before = (await target.collected()).resident
    const sockets = await Promise.all(Array.from({ length: clients }, () => open(target.http)))
    let refused = 0
    let most = 0
    const part = Buffer.alloc(19 * 2 ** 20)
    for (const socket of sockets) {
      socket
        .on("error", () => {})
        .once("data", (chunk) => {
          if (String(chunk).startsWith("HTTP/1.1 503")) refused += 1
        })
      socket.write(post("", 20 * 2 ** 20))
      socket.write(part)
    }
    await until("refused bodies", () => {
      most = Math.max(most, target.resident - before)
      return refused >= clients - 10
    })
    await expectAnswer(target)
    most = Math.max(most, target.resident - before)
    // The budget, and what the collector has not returned yet.
    if (most > 400e6) throw new Error(`the server grew by ${megabytes(most)}`)
    await recovered(target, sockets, before, run)
    return `${refused} refused, at most ${megabytes(most)} above the start`
  },
}

export const unreadResponses: Attack = {
  name: `${clients} clients that do not read 32 MiB each, 200 MB allowed`,
  seconds: 10,
  start: () => Target.serve([...flags, "--send-timeout-secs=2"]),
  run: async (target, run) => {
    const before = (await target.collected()).resident
    const sockets = await Promise.all(Array.from({ length: clients }, () => open(target.http)))
    for (const socket of sockets)
      socket
        .on("error", () => {})
        .pause()
        .write(post(zeros(32 * 2 ** 20)))
    let most = 0
    await until("closed connections", async () => {
      most = Math.max(most, target.resident - before)
      return (await target.actions("send_time")) > 0
    })
    await expectAnswer(target)
    if (most > 600e6) throw new Error(`the server grew by ${megabytes(most)}`)
    const refused = await target.actions("held_memory")
    await recovered(target, sockets, before, run)
    return `${refused} refused, at most ${megabytes(most)} above the start`
  },
}
