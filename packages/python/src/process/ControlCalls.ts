/**
 * Requests of a model's code to the server, as frames of the control socket: calls of other models, their loads,
 * metrics and log. Each has a number, which the replies repeat.
 */
import { Effect, Exit, type Fiber, Result } from "effect"
import { constVoid } from "effect/Function"
import type { InferenceError } from "@nereid/core/Errors"
import { Unavailable } from "@nereid/core/Errors"
import type { Cancel, Parameter, Parameters } from "@nereid/core/internal/request/Request"
import * as ErrorCode from "../wire/ErrorCode.ts"
import { FrameBody } from "../wire/FrameBody.ts"
import * as FrameKind from "../wire/FrameKind.ts"
import type { Frame } from "../wire/FrameReader.ts"
import * as Header from "../wire/Header.ts"
import * as ParameterText from "../wire/ParameterText.ts"
import * as TensorMessage from "../wire/TensorMessage.ts"
import { CallCredit } from "./CallCredit.ts"
import type { CallResponse, LogLevel, ModelCall, ModelControl, ModelPorts } from "./ModelPorts.ts"

export interface ControlCallsOptions {
  readonly ports: ModelPorts
  /** Maximum calls of other models at once. */
  readonly maxCalls: number
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly send: (kind: number, header: string, body?: FrameBody) => void
}

interface OpenCall {
  readonly cancel: Cancel
  readonly credit: CallCredit
}

const levels: ReadonlyArray<LogLevel> = ["INFO", "WARN", "ERROR", "VERBOSE"]

const sequenceStart = 1
const sequenceEnd = 2

export class ControlCalls {
  readonly #options: ControlCallsOptions
  readonly #calls = new Map<number, OpenCall>()
  #metrics: ReturnType<ModelPorts["metrics"]> | undefined
  #isClosed = false

  constructor(options: ControlCallsOptions) {
    this.#options = options
  }

  /**
   * Whether the frame was one of these.
   * @throws Error if it is wrong
   */
  receive({ kind, header, body }: Frame): boolean {
    switch (kind) {
      case FrameKind.LOG:
        this.#log(Header.parse(header))
        return true
      case FrameKind.CALL:
        this.#call(Header.parseExact(header), body)
        return true
      case FrameKind.CANCEL_CALL:
        this.#calls.get(numberOf(Header.parse(header)))?.cancel()
        return true
      case FrameKind.CREDIT_CALL:
        this.#give(Header.parse(header))
        return true
      case FrameKind.CONTROL_MODEL:
        this.#control(Header.parse(header), body)
        return true
      case FrameKind.METRIC:
        this.#measure(Header.parse(header))
        return true
      default:
        return false
    }
  }

  /** The process has ended: cancels its calls, and releases its metrics. */
  close(): void {
    this.#isClosed = true
    for (const { cancel } of this.#calls.values()) cancel()
    this.#calls.clear()
    this.#metrics?.release()
    this.#metrics = undefined
  }

  #log(header: Header.Header): void {
    for (const record of Header.list(header, "l")) {
      if (!Array.isArray(record)) throw new Error("a log record is not a list")
      const [level, message, file, line]: ReadonlyArray<unknown> = record
      this.#options.ports.log({
        level: (typeof level === "number" ? levels[level] : undefined) ?? "INFO",
        message: String(message),
        file: String(file ?? ""),
        line: typeof line === "number" ? line : 0,
      })
    }
  }

  #call(header: Header.Header, body: Uint8Array): void {
    const number = numberOf(header)
    const call: ModelCall = {
      model: Header.text(header, "model") ?? "",
      version: Header.text(header, "version") ?? "",
      id: Header.text(header, "id") ?? "",
      inputs: new TensorMessage.TensorReader(body).read(Header.list(header, "i")),
      parameters: parametersOf(header),
      requestedOutputs: Header.list(header, "o").filter((name) => typeof name === "string"),
      trace: Header.text(header, "tr"),
      decoupled: header["decoupled"] === true || header["decoupled"] === 1,
    }
    if (this.#calls.size >= this.#options.maxCalls * maxWaiting) {
      return this.#refuse(number, new Unavailable({ message: `more than ${this.#calls.size} calls are open` }))
    }
    let isOver = false
    const credit = new CallCredit(Header.integer(header, "credit") ?? Infinity)
    const end = () => {
      isOver = true
      this.#calls.delete(number)
      credit.give(Infinity)
    }
    this.#calls.set(number, { cancel: constVoid, credit })
    const cancel = this.#options.ports.call(call, {
      respond: (response, isFinal) => {
        if (isOver) return Effect.void
        if (isFinal) end()
        this.#respond(number, response, isFinal)
        return credit.take()
      },
      fail: (error) => {
        if (isOver) return Effect.void
        this.#refuse(number, error, false)
        return credit.take()
      },
      end: (error) => {
        if (isOver) return
        end()
        if (error === undefined) this.#reply(`{"n":${number},"final":1,"empty":1}`)
        else this.#refuse(number, error)
      },
    })
    if (!isOver) this.#calls.set(number, { cancel, credit })
  }

  #give(header: Header.Header): void {
    const count = Header.integer(header, "c") ?? 0
    this.#calls.get(numberOf(header))?.credit.give(count === 0 ? Infinity : count)
  }

  #respond(number: number, { model, version, outputs, parameters }: CallResponse, isFinal: boolean): void {
    const body = new FrameBody()
    const tensors = outputs.map(({ name, tensor }) => {
      body.add(tensor.bytes)
      const prefix = TensorMessage.prefix({ name, datatype: tensor.datatype })
      return TensorMessage.description(prefix, tensor.shape, tensor.bytes.length)
    })
    const text = ParameterText.print(parameters)
    const others = text === undefined ? "" : `,"p":${JSON.stringify(text)}`
    const named = `"model":${JSON.stringify(model)},"version":${JSON.stringify(version)}`
    this.#reply(`{"n":${number},${named},"final":${isFinal ? 1 : 0}${others},"o":[${tensors.join(",")}]}`, body)
  }

  #control(header: Header.Header, body: Uint8Array): void {
    const number = numberOf(header)
    const control = controlOf(header, body)
    const fiber = this.#options.run(this.#options.ports.control(control))
    fiber.addObserver((exit) => {
      if (Exit.isSuccess(exit)) return this.#reply(`{"n":${number},"ok":${exit.value}}`)
      const error = Exit.findError(exit)
      this.#refuse(
        number,
        Result.isSuccess(error) ? error.success : new Unavailable({ message: "the server is stopping" }),
      )
    })
  }

  #measure(header: Header.Header): void {
    const number = numberOf(header)
    const operation = Header.text(header, "do") ?? ""
    this.#metrics ??= this.#options.ports.metrics()
    const result = this.#metrics.apply({ ...header, do: operation })
    if (Result.isFailure(result)) return this.#reply(JSON.stringify({ n: number, e: result.failure }))
    this.#reply(JSON.stringify({ n: number, ok: result.success ?? true }))
  }

  #refuse(number: number, error: InferenceError, isFinal = true): void {
    const final = isFinal ? 1 : 0
    this.#reply(JSON.stringify({ n: number, e: error.message, k: ErrorCode.ofError(error), final }))
  }

  #reply(header: string, body?: FrameBody): void {
    if (!this.#isClosed) this.#options.send(FrameKind.REPLY, header, body)
  }
}

/** Calls of a process beyond its threads; a process limits itself, and its forks share the limit. */
const maxWaiting = 32

const numberOf = (header: Header.Header): number => {
  const number = Header.integer(header, "n")
  if (number === undefined) throw new Error("a frame has no number")
  return number
}

const parametersOf = (header: Header.Header): Parameters => {
  const parameters: Record<string, Parameter> = { ...ParameterText.parse(Header.text(header, "p") ?? "") }
  const { c: correlation, to: timeout, f: flags } = header
  const id = integerOf(correlation)
  if (typeof correlation === "string" && correlation !== "") parameters["sequence_id"] = correlation
  else if (id !== undefined && id !== 0n) parameters["sequence_id"] = id
  const bits = typeof flags === "number" ? flags : 0
  if ((bits & sequenceStart) !== 0) parameters["sequence_start"] = true
  if ((bits & sequenceEnd) !== 0) parameters["sequence_end"] = true
  const micros = integerOf(timeout)
  if (micros !== undefined && micros > 0n) parameters["timeout"] = micros
  return parameters
}

const integerOf = (value: unknown): bigint | undefined => {
  if (typeof value === "bigint") return value
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined
}

const controlOf = (header: Header.Header, body: Uint8Array): ModelControl => {
  const model = Header.text(header, "model") ?? ""
  switch (Header.text(header, "do")) {
    case "load": {
      const reader = new TensorMessage.TensorReader(body)
      const files = Header.list(header, "files").flatMap((file): ReadonlyArray<[string, Uint8Array]> => {
        if (!Header.isRecord(file)) throw new Error("a file is not an object")
        const [path, length] = [Header.text(file, "path"), Header.integer(file, "b")]
        if (path === undefined || length === undefined) throw new Error("a file has no path or no length")
        return [[path, reader.bytes(length)]]
      })
      return { _tag: "Load", model, config: Header.text(header, "config") ?? "", files: new Map(files) }
    }
    case "unload":
      return { _tag: "Unload", model, dependents: header["dependents"] === true || header["dependents"] === 1 }
    case "ready":
      return { _tag: "IsReady", model, version: Header.text(header, "version") ?? "" }
    default:
      throw new Error(`unknown operation ${JSON.stringify(header["do"])} on a model`)
  }
}
