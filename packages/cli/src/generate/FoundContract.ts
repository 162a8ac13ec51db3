/** What a source of contracts is asked, and what it finds. */
import type { ContractEntry } from "@nereid/core/internal/contract/ContractFile"
import type * as ConnectionFlags from "../flags/ConnectionFlags.ts"

export interface SourceOptions {
  /** How a server is reached. */
  readonly connection: Parameters<typeof ConnectionFlags.tls>[0] & {
    readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  }
  /** Empty: all there are; of an .onnx file what it is called. */
  readonly models: ReadonlyArray<string>
  readonly version: number | undefined
  /** Where the source does not say. */
  readonly maxBatchSize: number | undefined
  readonly configName: string | undefined
}

/** A contract as its source tells it, and with what it does not tell. */
export interface FoundContract {
  readonly told: ContractEntry["contract"]
  readonly entry: ContractEntry
}

export interface Found {
  readonly contracts: ReadonlyArray<FoundContract>
  /** Whether these are all there are; and not the model of a file, or those that were asked for. */
  readonly isComplete: boolean
  /** What a reader of the contracts should know of how they came to be. */
  readonly notes: ReadonlyArray<string>
}
