/**
 * `nereid serve --watch`: serves each version of a module in a child process, and starts another one after a change of
 * the module or of a file that it imports. The ports stay open.
 *
 *   supervisor ── holds the ports, watches the files
 *     ├─ current version ◄── connections
 *     └─ next version: loads its models ─► ready: it becomes the current one, and the one before it drains
 *                                       └─ fails: the current version keeps serving until the next change
 *
 * Without a current version, connections wait.
 */
import { relative } from "node:path"
import { Effect } from "effect"
import { ChangedFiles } from "./ChangedFiles.ts"
import { HeldPorts } from "./HeldPorts.ts"
import type { FromVersion } from "./Message.ts"
import { type Ended, VersionProcess } from "./VersionProcess.ts"

const signals: ReadonlyArray<NodeJS.Signals> = ["SIGINT", "SIGTERM"]

/** Runs until the program is stopped, or until the ports of the first version cannot be opened. */
export const run: Effect.Effect<never> = Effect.acquireUseRelease(
  Effect.sync(() => new Supervisor()),
  (supervisor) =>
    Effect.andThen(
      Effect.promise(() => supervisor.failed),
      Effect.interrupt,
    ),
  (supervisor) => Effect.promise(() => supervisor.stop()),
)

class Supervisor {
  readonly #ports = new HeldPorts()
  readonly #files = new ChangedFiles((paths) => this.#restart(paths), say)
  /** Versions whose processes have not ended. */
  readonly #versions = new Set<VersionProcess>()
  #current: VersionProcess | undefined
  #next: VersionProcess | undefined
  #isStopping = false
  #isPortRefused = false
  #killedBy: NodeJS.Signals | undefined
  readonly #failed = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #onSignal = (signal: NodeJS.Signals): void => this.#end(signal)

  constructor() {
    // Before the listener that interrupts the program, which calls `stop`.
    for (const signal of signals) process.prependListener(signal, this.#onSignal)
    this.#begin()
  }

  /** Fulfilled if a restart cannot help. */
  get failed(): Promise<void> {
    return this.#failed.promise
  }

  /** Ends all versions, with the exit code of the current one. */
  async stop(): Promise<void> {
    if (!this.#isStopping) this.#end("SIGTERM")
    await this.#ended.promise
    for (const signal of signals) process.off(signal, this.#onSignal)
    // As the version did: by force.
    if (this.#killedBy !== undefined) process.kill(process.pid, this.#killedBy)
  }

  #begin(): void {
    const version = new VersionProcess((version) => ({
      message: (message) => this.#receive(version, message),
      ended: (ended) => this.#forget(version, ended),
    }))
    this.#versions.add(version)
    this.#next = version
  }

  #restart(paths: ReadonlyArray<string>): void {
    if (this.#isStopping) return
    const names = paths.map((path) => relative(process.cwd(), path))
    say(`Restarting: ${names.join(", ")} ${names.length === 1 ? "has" : "have"} changed`)
    this.#next?.kill()
    this.#begin()
  }

  #receive(version: VersionProcess, message: FromVersion): void {
    if (message.type === "imported") {
      for (const path of message.paths) {
        version.imports.add(path)
        if (!this.#isStopping && this.#isWanted(version)) this.#files.add(path, version.startedAt)
      }
    } else if (message.type === "listen") {
      void this.#ports.open(message.id, message.address).then((reply) => {
        if (reply.type === "refused") this.#isPortRefused = true
        version.send(reply)
      })
    } else if (version === this.#next && !this.#isStopping) this.#promote(version)
  }

  #promote(version: VersionProcess): void {
    const before = this.#current
    this.#current = version
    this.#next = undefined
    this.#ports.sendTo((id, socket) => version.receive(id, socket))
    this.#files.keepOnly(version.imports)
    before?.send({ type: "replaced" })
    const duration = Date.now() - version.startedAt
    say(before === undefined ? "Watching for changes" : `Restarted in ${duration} ms`)
  }

  #forget(version: VersionProcess, { code, signal }: Ended): void {
    this.#versions.delete(version)
    const wanted = this.#isWanted(version)
    if (version === this.#current) {
      this.#current = undefined
      this.#ports.sendTo(undefined)
      if (this.#isStopping) {
        process.exitCode = code ?? 1
        this.#killedBy = signal ?? undefined
      }
    }
    if (version === this.#next) this.#next = undefined
    if (this.#isStopping) {
      if (this.#versions.size === 0) this.#ended.resolve()
    } else if (wanted) this.#report(code, signal)
  }

  #report(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#current !== undefined) {
      return say("The changed module cannot be served; the version before the change keeps serving")
    }
    if (this.#isPortRefused) {
      process.exitCode = 1
      return this.#failed.resolve()
    }
    if (this.#next !== undefined) return
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
    say(`The server ${how}; connections wait until a change starts it again`)
  }

  #isWanted(version: VersionProcess): boolean {
    return version === this.#current || version === this.#next
  }

  #end(signal: NodeJS.Signals): void {
    if (this.#isStopping) {
      for (const version of this.#versions) version.kill()
      process.kill(process.pid, "SIGKILL")
    }
    this.#isStopping = true
    this.#files.close()
    this.#ports.close()
    this.#next?.kill()
    // The console of Windows has sent Ctrl-C to all processes already.
    const isDelivered = process.platform === "win32" && signal === "SIGINT"
    if (!isDelivered) for (const version of this.#versions) version.send({ type: "signal", signal })
    if (this.#versions.size === 0) this.#ended.resolve()
  }
}

const say = (message: string): void => console.log(message)
