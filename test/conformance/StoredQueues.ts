/**
 * A repository of models that wait and share batches by their configuration: scripts that a test holds (Held.ts), which are
 * those of Models.ts where they have the same name. What is no question of more than one request is in StoredModels.ts.
 */
import { Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { repository } from "../fixtures/repository.ts"
import { holding } from "./Held.ts"

const io = ["input", "output"].map((kind) => `${kind} { name: "X" data_type: TYPE_INT32 dims: 1 }`).join("\n")

/** Scripts by their configurations. */
const held: Readonly<Record<string, string>> = {
  levels: `max_batch_size: 1 ${io}
    dynamic_batching {
      priority_levels: 4
      default_priority_level: 2
      default_queue_policy {
        max_queue_size: 4 default_timeout_microseconds: 20000000 allow_timeout_override: true
      }
      priority_queue_policy { key: 1 value { max_queue_size: 1 } }
      priority_queue_policy [{ key: 4 value { default_timeout_microseconds: 1000, allow_timeout_override: true } }]
    }`,
  delays: `max_batch_size: 1 ${io}
    dynamic_batching {
      default_queue_policy {
        timeout_action: DELAY default_timeout_microseconds: 20000000 allow_timeout_override: true
      }
    }`,
  ordered: `max_batch_size: 1 ${io}
    dynamic_batching { preserve_ordering: true }
    instance_group { count: 2 kind: KIND_CPU }`,
}

export const layer = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    for (const [name, config] of Object.entries(held)) {
      fixture.write(`${name}/1/model.js`, holding)
      fixture.write(`${name}/config.pbtxt`, config)
    }
    return Repository.layer({ directories: [fixture.path] })
  }),
)
