/** A server in a process of its own, on a core of its own where there are two: the parent's half of Reporter.ts. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { onCore } from "./Cores.ts"
import type { Ports, Question, Report } from "./Reporter.ts"

export interface Child {
  readonly ports: Ports
  readonly ask: (question: Question) => Promise<Report>
  readonly stop: () => Promise<void>
}

/** Starts a module, pinned to `core` if there is one to pin it to. */
export const start = async (file: URL, core: number | undefined): Promise<Child> => {
  const [command = "", ...args] = onCore(core, [process.execPath, fileURLToPath(file)])
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  const gone = once(child, "exit").then(([code, signal]: Array<unknown>) => {
    throw new Error(`${file.href} ended by itself, with ${code ?? signal}`)
  })
  gone.catch(() => {})
  const message = async <A>(): Promise<A> => (await Promise.race([once(child, "message"), gone]))[0]
  return {
    ports: await message<Ports>(),
    ask: (question) => {
      const answer = message<Report>()
      child.send(question)
      return answer
    },
    stop: async () => {
      const exit = once(child, "exit")
      child.disconnect()
      await exit
    },
  }
}
