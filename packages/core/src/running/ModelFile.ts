/** The file that a model is loaded from, for those who write it down as a model of a repository. */
import type { MessageInitShape } from "@bufbuild/protobuf"
import type { ModelConfigSchema } from "@nereid/protocol/model_config"

export interface ModelFile {
  readonly path: string
  /** How it is loaded, in the words of a configuration, without what is its default. */
  readonly configuration: {
    readonly parameters?: Readonly<Record<string, string>>
    readonly optimization?: MessageInitShape<typeof ModelConfigSchema>["optimization"]
  }
  /** Options that a configuration has no words for. */
  readonly unsaid: ReadonlyArray<string>
}
