/** The servers of the cases that Triton can be: their flags and their models. */
import * as Models from "../conformance/Models.ts"
import { secret, type ServerName } from "../conformance/ServerUnderTest.ts"
import * as TritonModels from "./TritonModels.ts"
import * as TritonStoredModels from "./TritonStoredModels.ts"

export interface Setup {
  readonly flags: ReadonlyArray<string>
  /** Writes the repository into a directory. */
  readonly write: (directory: string) => void
  /** Why Triton cannot have a model of the cases, by its name. */
  readonly unavailable: ReadonlyMap<string, string>
}

const unavailable: ReadonlyMap<string, string> = new Map([
  ...Models.models.flatMap((model): ReadonlyArray<readonly [string, string]> =>
    "definition" in model && !TritonModels.names.has(model.definition.name)
      ? [[model.definition.name, "a model that holds requests"]]
      : [],
  ),
  ...Object.entries(TritonModels.others),
])

const normal: Setup = { flags: [], write: TritonModels.write, unavailable }

const restriction = `model-repository,statistics,logging:${secret.key}=${secret.value}`

export const setups: Readonly<Partial<Record<ServerName, Setup>>> = {
  normal,
  guarded: {
    ...normal,
    flags: [
      `--http-restricted-api=${restriction}`,
      `--grpc-restricted-protocol=${restriction}`,
      "--http-header-forward-pattern=^x-forward-|^priority$",
      "--grpc-header-forward-pattern=^x-forward-",
      "--grpc-infer-response-compression-level=low",
    ],
  },
  stored: {
    flags: [
      "--model-control-mode=explicit",
      "--exit-on-error=false",
      "--cache-config=local,size=1048576",
      ...TritonStoredModels.names.map((name) => `--load-model=${name}`),
    ],
    write: TritonStoredModels.write,
    unavailable: TritonStoredModels.unavailable,
  },
}
