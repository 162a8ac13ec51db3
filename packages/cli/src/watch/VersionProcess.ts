/** The parent side: a child process that serves one version of the module, with the arguments of this process. */
import { type ChildProcess, fork } from "node:child_process"
import type { Socket } from "node:net"
import type { FromVersion, PortId, ToVersion } from "./Message.ts"
import * as Supervision from "./Supervision.ts"

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

interface Listeners {
  readonly message: (message: FromVersion) => void
  readonly ended: (ended: Ended) => void
}

export class VersionProcess {
  /** Milliseconds since the epoch. */
  readonly startedAt = Date.now()
  /** Files of the project that the version imports. */
  readonly imports = new Set<string>()
  readonly #process: ChildProcess

  constructor(listeners: (version: VersionProcess) => Listeners) {
    const [, main = "", ...args] = process.argv
    this.#process = fork(main, args, {
      env: Supervision.environment(),
      execArgv: [...process.execArgv, `--import=${import.meta.resolve("@nereid/cli/internal/watch/report")}`],
      // Apart from the terminal, whose Ctrl-C this process passes on. Windows has no such groups.
      detached: process.platform !== "win32",
      stdio: "inherit",
    })
    const { message, ended } = listeners(this)
    this.#process.on("message", (received) => message(received as FromVersion))
    // Unlike "exit", "close" comes after the last message.
    this.#process.on("close", (code, signal) => ended({ code, signal }))
    this.#process.on("error", () => {
      if (this.#process.pid === undefined) ended({ code: 1, signal: null })
    })
  }

  send(message: ToVersion): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }

  /** Passes on a connection. Returns false if the process has ended. */
  receive(id: PortId, socket: Socket): boolean {
    if (!this.#process.connected) return false
    this.#process.send({ type: "connection", id } satisfies ToVersion, socket, () => {})
    return true
  }

  /** Ends a version that has not served yet. */
  kill(): void {
    this.#process.kill("SIGKILL")
  }
}
