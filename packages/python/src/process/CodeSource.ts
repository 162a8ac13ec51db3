/** Where the Python code of a model is. */

export interface CodeSource {
  /** Path of the file; empty for a module. */
  readonly file: string
  /** Dotted name of a module; undefined for a file. */
  readonly module: string | undefined
  /** Name of the function; undefined for code with a class TritonPythonModel. */
  readonly functionName: string | undefined
  readonly versionDirectory: string
  readonly modelDirectory: string
}

/** The file, or the name of the module, for messages. */
export const print = ({ file, module }: Pick<CodeSource, "file" | "module">): string => module ?? file
