/** A file of an exported model. */
export interface ModelFileContent {
  /** Below the model's directory. */
  readonly path: string
  readonly content: string | Uint8Array
}
