/** A program as a user starts it: a child process whose output is read, on the Node that runs the tests by default. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process"
import { createServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"

export const root = join(import.meta.dirname, "..")

export interface Ended {
  readonly code: number | null
  /** Signal that ended the process; null if it exited by itself. */
  readonly signal: NodeJS.Signals | null
  readonly output: string
}

/** Without the variables of the command line, whose names those of the tests share. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("NEREID_")))

export class Program {
  readonly #process: ChildProcess
  #output = ""
  /** Callers that wait for more output. */
  readonly #waiting: Array<() => void> = []
  readonly ended: Promise<Ended>

  /** `variables`: additional environment variables. `file`: another program than Node. */
  constructor(
    args: ReadonlyArray<string>,
    variables: NodeJS.ProcessEnv = {},
    cwd = root,
    file: string = process.execPath,
  ) {
    this.#process = spawn(file, [...args], {
      cwd,
      env: { ...environment, ...variables },
      stdio: ["ignore", "pipe", "pipe"],
    })
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (data: Buffer) => {
        this.#output += data.toString()
        for (const wake of this.#waiting.splice(0)) wake()
      })
    }
    this.ended = new Promise((resolve) => {
      this.#process.on("close", (code, signal) => resolve({ code, signal, output: this.#output }))
    })
  }

  /** The first match of the pattern in the output; fails if the program ends without one. */
  async match(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#output)
      if (match !== null) return match
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push(resolve)
        void this.ended.then(({ output }) => reject(new Error(`Ended without ${String(pattern)}:\n${output}`)))
      })
    }
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  get output(): string {
    return this.#output
  }

  /** Closes a stream of the program, as a reader that ends. */
  close(name: "stdout" | "stderr"): void {
    this.#process[name]?.destroy()
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Ends it with SIGTERM and waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGTERM")
    await this.ended
  }
}

/** Runs a line as a user's shell would. */
export const shell = async (line: string): Promise<string> => (await promisify(execFile)("sh", ["-c", line])).stdout

/** The lines that are shown to users call it; a machine that has Node need not have it. */
export const hasCurl = spawnSync("curl", ["--version"]).status === 0

/** A port that no process listens on. */
export const freePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer().listen(0, () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

export const command = "packages/cli/src/main.ts"

export const nereid = (...args: ReadonlyArray<string>) => new Program([command, ...args])

/** The same, with additional environment variables. */
export const nereidWith = (variables: NodeJS.ProcessEnv, ...args: ReadonlyArray<string>) =>
  new Program([command, ...args], variables)
