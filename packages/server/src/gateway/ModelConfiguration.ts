/** A model's configuration as the HTTP port prints it; core's ConfigurationMessage.ts makes it. */
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import { print } from "@nereid/core/internal/codec/protobuf/MessageJson"

export const json = (configuration: ModelConfig) => print(ModelConfigSchema, configuration)
