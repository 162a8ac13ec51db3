/**
 * Messages between an instance and its worker, apart from the shared memory of Slots.ts: the worker's start data, the
 * result of loading, and the batches that do not fit a slot. Types only.
 */
import type { DataType } from "@nereid/core/internal/tensor/DataType"
import type { MessagePort } from "node:worker_threads"
import type { Provider } from "./Provider.ts"
import type { DynamicLayout } from "./DynamicSlot.ts"
import type { Layout } from "./Slots.ts"

/** Graph optimization levels of ONNX Runtime. */
export type GraphOptimization = "disabled" | "basic" | "extended" | "layout" | "all"

export interface SessionOptions {
  /** Path of the .onnx file. */
  readonly file: string
  /** Inputs that every batch provides, although the file has values for them. */
  readonly requiredInputs: ReadonlyArray<string>
  readonly intraOpThreads: number
  readonly interOpThreads: number
  readonly graphOptimization: GraphOptimization
  readonly memoryArena: boolean
  /** In order of preference. */
  readonly providers: ReadonlyArray<Provider>
}

export interface TensorName {
  readonly name: string
  readonly datatype: DataType
}

/** `workerData`. */
export interface SessionStart {
  readonly session: SessionOptions
  readonly inputs: ReadonlyArray<TensorName>
  readonly outputs: ReadonlyArray<TensorName>
  readonly layout: Layout | undefined
  /** Layout of slots for dynamic shapes, if `layout` is undefined. */
  readonly dynamic: DynamicLayout | undefined
  readonly memory: SharedArrayBuffer
  /** Carries the batches of the general path in both directions; its messages are fetched, never delivered. */
  readonly port: MessagePort
}

/** Posted once to the parent; a worker that could not load exits by itself afterwards. */
export type LoadReply =
  | { readonly _tag: "Loaded"; readonly provider: string; readonly refused: ReadonlyArray<string> }
  | { readonly _tag: "LoadFailed"; readonly message: string }

/** Tensor of the general path: little-endian bytes in a separate buffer, or strings. */
export interface TensorMessage {
  readonly dims: ReadonlyArray<number>
  readonly data: Uint8Array<ArrayBuffer> | ReadonlyArray<string>
}

/** By position in the signature's inputs. */
export type GeneralInputs = ReadonlyArray<TensorMessage>

export type BatchReply =
  | { readonly _tag: "Outputs"; readonly outputs: ReadonlyArray<TensorMessage> }
  | { readonly _tag: "Failed"; readonly message: string }
