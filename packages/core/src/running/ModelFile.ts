/** The file of a model and its load options, for the export to a repository. */
export interface ModelFile {
  readonly path: string
  /** Parameters of a configuration that say how it is loaded, without those that are at their defaults. */
  readonly parameters: Readonly<Record<string, string>>
  /** Level of graph optimization in a configuration's numbers; 0 is the default. */
  readonly graphLevel: number
  /** Names of accelerators on GPUs. */
  readonly gpuAccelerators: ReadonlyArray<string>
  /** Options that a configuration cannot express. */
  readonly unsupportedOptions: ReadonlyArray<string>
}
