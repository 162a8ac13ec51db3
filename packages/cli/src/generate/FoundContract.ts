/** The options and the result of a source of contracts. */
import type { ContractEntry } from "@nereid/core/internal/contract/ContractFile"
import type * as ConnectionFlags from "../flags/ConnectionFlags.ts"

export interface SourceOptions {
  /** Connection to a server. */
  readonly connection: Parameters<typeof ConnectionFlags.tls>[0] & {
    readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  }
  /** Empty: all there are; of an .onnx file what it is called. */
  readonly models: ReadonlyArray<string>
  readonly version: number | undefined
  /** Maximum batch size, if the source lacks one. */
  readonly maxBatchSize: number | undefined
  readonly configName: string | undefined
}

/** A contract as its source has it, and completed by options. */
export interface FoundContract {
  readonly sourceContract: ContractEntry["contract"]
  readonly entry: ContractEntry
}

export interface FoundContracts {
  readonly contracts: ReadonlyArray<FoundContract>
  /** Whether these are all models of the source; false for a model file or for selected models. */
  readonly isComplete: boolean
  /** Notes for readers of the contracts, on how they were found. */
  readonly notes: ReadonlyArray<string>
}
