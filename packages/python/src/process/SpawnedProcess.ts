/**
 * One Python process and its two sockets: frames in and out, printed lines, and the moment of its death.
 * ModelProcess.ts has the meaning of the frames.
 *
 *   control   descriptor 3 of the process: start, stop, readiness, calls of other models, log
 *   data      a Unix socket for each instance, in a folder that only this user can open, and that is removed once both
 *             ends of each are connected
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmdirSync, unlinkSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Duplex } from "node:stream"
import { fileURLToPath } from "node:url"
import * as BodyPool from "../wire/BodyPool.ts"
import type { FrameBody } from "../wire/FrameBody.ts"
import { type Frame, FrameReader } from "../wire/FrameReader.ts"
import * as FrameKind from "../wire/FrameKind.ts"
import * as FrameWriter from "../wire/FrameWriter.ts"
import { SharedBodies } from "../wire/SharedBodies.ts"
import * as PrintedLines from "./PrintedLines.ts"

export interface SpawnOptions {
  readonly python: string
  readonly environment: Readonly<Record<string, string>>
  readonly printed: (line: string, stream: "stdout" | "stderr") => void
}

export interface ProcessEvents {
  readonly onControl: (frame: Frame) => void
  readonly onData: (frame: Frame) => void
  /** The process is of no use any more: it has died, or is killed now. Called once. */
  readonly onBroken: (reason: string) => void
  /** The process has ended, and everything that it has printed was read. Called once. */
  readonly onExit: (reason: string) => void
}

/** The main file of model processes, in the package's folder of Python code. */
const main = fileURLToPath(new URL("../../python/nereid_model/process.py", import.meta.url))

/** Paths of Unix sockets have at most 107 bytes on Linux, and 103 on macOS. */
const maxSocketPath = 100

/** The data socket of one instance. */
interface DataSocket {
  readonly socket: Socket
  readonly reader: FrameReader
  shared: SharedBodies | undefined
}

export class SpawnedProcess {
  readonly #events: ProcessEvents
  readonly #child: ChildProcess
  readonly #control: Duplex
  readonly #data: Array<DataSocket> = []
  #folder: string | undefined
  #isBroken = false
  #failure: string | undefined

  /** @throws Error if the process cannot be spawned */
  constructor({ python, environment, printed }: SpawnOptions, events: ProcessEvents) {
    this.#events = events
    const child = spawn(python, [main], { env: environment, stdio: ["ignore", "pipe", "pipe", "pipe"] })
    this.#child = child
    const control = child.stdio[3]
    if (!(control instanceof Duplex) || child.stdout === null || child.stderr === null) {
      child.kill("SIGKILL")
      throw new Error("the process has no pipes")
    }
    this.#control = control
    PrintedLines.read(child.stdout, (line) => printed(line, "stdout"))
    PrintedLines.read(child.stderr, (line) => printed(line, "stderr"))
    const reader = new FrameReader((frame) => this.#received(() => events.onControl(frame)))
    control.on("data", (chunk: Buffer) => this.#received(() => reader.push(chunk)))
    control.on("error", () => {})
    control.once("close", () => this.#break("its control socket was closed"))
    child.once("error", (error) => {
      this.#failure = error.message
      // Without a process there is no exit.
      if (child.pid === undefined) this.#exit(error.message)
    })
    child.once("close", (code, signal) => this.#exit(this.#failure ?? reasonOf(code, signal)))
    child.once("exit", (code, signal) => {
      // After the frames that have arrived in the same turn.
      setImmediate(() => this.#break(reasonOf(code, signal)))
      // A process that it has forked may keep the pipes open.
      for (const stream of child.stdio.slice(1)) setTimeout(() => stream?.destroy(), pipeTimeout).unref()
    })
    // The process itself keeps Node running, until `unref`.
    for (const stream of child.stdio) unref(stream)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Makes the path of the data sockets, in a new folder that only this user can open. */
  makeSocketPath(): string {
    const folders = [tmpdir(), "/tmp"]
    const parent = folders.find((folder) => Buffer.byteLength(folder) + 30 < maxSocketPath) ?? "/tmp"
    // mkdtemp makes folders with mode 0700.
    this.#folder = mkdtempSync(join(parent, "nereid-"))
    return join(this.#folder, dataName)
  }

  /** Connects a data socket for each instance. The process, which listens, accepts them in this order. */
  connect(path: string, instances: number): void {
    let left = instances
    const onConnected = () => {
      left -= 1
      if (left === 0) this.#removeFolder()
    }
    for (let index = 0; index < instances; index++) this.#connectOne(path, onConnected)
  }

  #connectOne(path: string, onConnected: () => void): void {
    const reader = new FrameReader((frame) => this.#received(() => this.#events.onData(frame)), BodyPool.shared)
    const socket = connect({
      path,
      onread: {
        buffer: () => reader.space,
        callback: (count) => {
          this.#received(() => reader.filled(count))
          return true
        },
      },
    })
    this.#data.push({ socket, reader, shared: undefined })
    socket.on("error", () => {})
    socket.once("close", () => this.#break("its data socket was closed"))
    socket.once("connect", onConnected)
    socket.unref()
  }

  /** Shares memory for large bodies of each data socket, if the process has some that can be opened. */
  share(memory: ReadonlyArray<unknown>): void {
    if (this.#isBroken || memory.length === 0 || memory.length !== this.#data.length) return
    const opened = memory.flatMap((one) => SharedBodies.open(one) ?? [])
    if (opened.length < memory.length) {
      for (const shared of opened) shared.close()
      return
    }
    for (const [index, data] of this.#data.entries()) {
      const shared = opened[index]
      if (shared === undefined) continue
      data.shared = shared
      data.reader.share(shared)
    }
    this.sendControl(FrameKind.SHARED, "{}")
  }

  sendControl(kind: number, header: string, body?: FrameBody): void {
    FrameWriter.write(this.#control, kind, header, body)
  }

  /** Sends to the instance at this index. */
  sendData(instance: number, kind: number, header: string, body?: FrameBody): void {
    const data = this.#data[instance]
    if (data !== undefined) FrameWriter.write(data.socket, kind, header, body, data.shared)
  }

  /** Sends to all instances, ahead of what each receives next. */
  sendToAll(kind: number, header: string): void {
    for (const index of this.#data.keys()) this.sendData(index, kind, header)
  }

  /** Keeps Node running until `unref`, as from the start. */
  ref(): void {
    this.#child.ref()
  }

  unref(): void {
    this.#child.unref()
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Ends the process at once, for this reason. */
  kill(reason: string): void {
    this.#failure ??= reason
    this.#break(reason)
  }

  /** Calls a function that must not throw; whatever it throws is a mistake of the process. */
  #received(run: () => void): void {
    if (this.#isBroken) return
    try {
      run()
    } catch (error) {
      this.kill(`it broke the protocol: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  #break(reason: string): void {
    if (this.#isBroken) return
    this.#isBroken = true
    this.#child.kill("SIGKILL")
    this.#control.destroy()
    for (const { socket, shared } of this.#data) {
      socket.destroy()
      shared?.close()
    }
    this.#removeFolder()
    this.#events.onBroken(reason)
  }

  #exit(reason: string): void {
    this.#break(reason)
    this.#removeFolder()
    this.#events.onExit(reason)
  }

  /** Removes the folder. The process may make or remove the socket meanwhile, so a later event may have to try again. */
  #removeFolder(): void {
    const folder = this.#folder
    if (folder === undefined) return
    succeeds(() => unlinkSync(join(folder, dataName)))
    if (succeeds(() => rmdirSync(folder))) this.#folder = undefined
  }
}

const dataName = "data"

/** Whether the call throws nothing. */
const succeeds = (run: () => void): boolean => {
  try {
    run()
    return true
  } catch {
    return false
  }
}

/** Milliseconds that the pipes of a dead process stay open for what was printed. */
const pipeTimeout = 500

const reasonOf = (code: number | null, signal: NodeJS.Signals | null): string =>
  signal === null ? `exit code ${code}` : `signal ${signal}`

/** Pipes have it, and the types of streams do not. */
const unref = (stream: unknown): void => {
  if (typeof stream === "object" && stream !== null && "unref" in stream && typeof stream.unref === "function") {
    stream.unref()
  }
}
