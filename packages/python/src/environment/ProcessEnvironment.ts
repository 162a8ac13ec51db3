/**
 * Environment variables of a model process: what Python and numerical libraries read, and what the owner adds. The rest
 * of the server's environment, with its secrets, stays in the server.
 */

/** Names; one that ends with `*` stands for all with that beginning. */
const inherited: ReadonlyArray<string> = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LANGUAGE",
  "LC_*",
  "TZ",
  "TMPDIR",
  "LD_LIBRARY_PATH",
  "LD_PRELOAD",
  "PYTHON*",
  "VIRTUAL_ENV",
  "CONDA_PREFIX",
  "XDG_CACHE_HOME",
  "OMP_*",
  "MKL_*",
  "KMP_*",
  "OPENBLAS_*",
  "NUMEXPR_*",
  "VECLIB_*",
  "MALLOC_*",
  "CUDA_*",
  "NVIDIA_*",
  "TORCH_HOME",
  "HF_HOME",
  "HF_HUB_CACHE",
  "HF_HUB_OFFLINE",
  "TRANSFORMERS_OFFLINE",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
]

export type Variables = Readonly<Record<string, string>>

export interface EnvironmentOptions {
  /** The environment of the server. */
  readonly from: Readonly<Record<string, string | undefined>>
  /** Further names that are inherited; one that ends with `*` stands for all with that beginning. */
  readonly inherit: ReadonlyArray<string>
  /** Variables of the interpreter's environment. An undefined value removes the variable. */
  readonly interpreter: Readonly<Record<string, string | undefined>>
  /** Variables of the owner, which override all others. */
  readonly own: Variables
}

export const make = ({ from, inherit, interpreter, own }: EnvironmentOptions): Variables => {
  const matches = matcher([...inherited, ...inherit])
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries({ ...from, ...interpreter })) {
    if (value === undefined || (!matches(name) && !Object.hasOwn(interpreter, name))) continue
    variables[name] = value
  }
  return { ...variables, ...own }
}

const matcher = (patterns: ReadonlyArray<string>): ((name: string) => boolean) => {
  const names = new Set(patterns)
  const beginnings = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1))
  return (name) => names.has(name) || beginnings.some((beginning) => name.startsWith(beginning))
}
