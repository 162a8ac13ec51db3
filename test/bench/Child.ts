/** A child process, on a separate core if there are two: the parent's side of Reporter.ts. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { onCore } from "./Cores.ts"
import type { CommandMessage, Ports, Commands } from "./Reporter.ts"

export interface Child {
  readonly ports: Ports
  readonly call: <K extends keyof Commands>(
    command: K,
    ...input: undefined extends Commands[K]["input"] ? [] : [Commands[K]["input"]]
  ) => Promise<Commands[K]["output"]>
  readonly stop: () => Promise<void>
}

/** Starts a module, pinned to `core` if there is one to pin it to. */
export const start = async (
  file: URL,
  core: number | string | undefined,
  nodeOptions: ReadonlyArray<string> = [],
  parameters: ReadonlyArray<string> = [],
): Promise<Child> => {
  const [command = "", ...args] = onCore(core, [process.execPath, ...nodeOptions, fileURLToPath(file), ...parameters])
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  const gone = once(child, "exit").then(([code, signal]: Array<unknown>) => {
    throw new Error(`${file.href} ended by itself, with ${code ?? signal}`)
  })
  gone.catch(() => {})
  const nextReply = async <A>(): Promise<A> => (await Promise.race([once(child, "message"), gone]))[0].output
  return {
    ports: await nextReply<Ports>(),
    call: <K extends keyof Commands>(name: K, input?: Commands[K]["input"]) => {
      const reply = nextReply<Commands[K]["output"]>()
      const message: CommandMessage<K> = { command: name, input }
      child.send(message)
      return reply
    },
    stop: async () => {
      const exit = once(child, "exit")
      child.disconnect()
      await exit
    },
  }
}
