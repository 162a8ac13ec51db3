/** The instances of a model as its layer has them, for tests that hand them batches themselves. No test is in here. */
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import { Effect } from "effect"
import { type OnnxOptions, source } from "./Instances.ts"
import type { Spawn } from "./WorkerInstance.ts"

export const instances = Effect.fnUntraced(function* (
  definition: Definition<Fields, Fields>,
  options: OnnxOptions,
  spawn?: Spawn,
) {
  const set = yield* InstanceSet.make(yield* source(definition, options, spawn))
  return set.instances
})
