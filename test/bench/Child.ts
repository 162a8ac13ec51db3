/** A process of its own, on a core of its own where there are two: the parent's half of Reporter.ts. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { onCore } from "./Cores.ts"
import type { Asked, Ports, Questions } from "./Reporter.ts"

export interface Child {
  readonly ports: Ports
  readonly ask: <K extends keyof Questions>(
    question: K,
    ...ask: undefined extends Questions[K]["ask"] ? [] : [Questions[K]["ask"]]
  ) => Promise<Questions[K]["answer"]>
  readonly stop: () => Promise<void>
}

/** Starts a module, pinned to `core` if there is one to pin it to. */
export const start = async (
  file: URL,
  core: number | string | undefined,
  nodeOptions: ReadonlyArray<string> = [],
): Promise<Child> => {
  const [command = "", ...args] = onCore(core, [process.execPath, ...nodeOptions, fileURLToPath(file)])
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  const gone = once(child, "exit").then(([code, signal]: Array<unknown>) => {
    throw new Error(`${file.href} ended by itself, with ${code ?? signal}`)
  })
  gone.catch(() => {})
  const answer = async <A>(): Promise<A> => (await Promise.race([once(child, "message"), gone]))[0].answer
  return {
    ports: await answer<Ports>(),
    ask: <K extends keyof Questions>(question: K, ask?: Questions[K]["ask"]) => {
      const answered = answer<Questions[K]["answer"]>()
      const asked: Asked<K> = { question, ask }
      child.send(asked)
      return answered
    },
    stop: async () => {
      const exit = once(child, "exit")
      child.disconnect()
      await exit
    },
  }
}
