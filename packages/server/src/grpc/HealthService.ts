/**
 * `grpc.health.v1.Health` for the server, under the empty name and under the name of the inference service. Watch sends
 * the status, and then each further one. Readiness has no event of its own, so one timer compares it while a client
 * watches; loads, unloads and a stop are seen at once. Only Check asks the code of models, which may take seconds.
 * https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 */
import type { ConnectRouter } from "@connectrpc/connect"
import { Effect } from "effect"
import { constVoid } from "effect/Function"
import { ModelNotFound, QueueFull } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@nereid/protocol/health"
import type { Gateway } from "../gateway/Gateway.ts"
import * as BinaryRequests from "./BinaryRequests.ts"
import { exhausted, fromError, shuttingDown } from "./CallStatus.ts"
import { connectError } from "./connectError.ts"

/** Watch calls at a time. */
const maxWatchers = 1_000

/** Time between two comparisons of the status, in milliseconds. */
const intervalMillis = 1_000

export const route = (
  router: ConnectRouter,
  gateway: Pick<Gateway, "isReady" | "serverReady" | "models" | "leaving" | "stopping">,
): void => {
  const watchers = makeWatchers(gateway)
  const isKnown = (service: string) => service === "" || service === GRPCInferenceService.typeName
  const statusOf = (isReady: boolean) => (isReady ? ServingStatus.SERVING : ServingStatus.NOT_SERVING)
  router.service(BinaryRequests.undecoded(Health), {
    check: async ({ service }) => {
      if (isKnown(service)) return { status: statusOf(await Effect.runPromise(gateway.serverReady)) }
      throw connectError(fromError(new ModelNotFound({ message: `unknown service '${service}'` })))
    },
    watch: async function* ({ service }, { signal }) {
      if (watchers.size >= maxWatchers) throw connectError(exhausted(new QueueFull({ message: tooMany })))
      let wake = constVoid
      const onChange = () => wake()
      watchers.add(onChange)
      signal.addEventListener("abort", onChange)
      try {
        let last: ServingStatus | undefined
        while (!signal.aborted) {
          const next = isKnown(service) ? statusOf(gateway.isReady()) : ServingStatus.SERVICE_UNKNOWN
          if (next !== last) {
            last = next
            yield { status: next }
          } else if (gateway.stopping.aborted) throw connectError(fromError(shuttingDown))
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        signal.removeEventListener("abort", onChange)
        watchers.delete(onChange)
      }
    },
  })
}

const tooMany = `${maxWatchers} calls of Watch are open, which is the maximum`

interface Watchers {
  readonly size: number
  readonly add: (onChange: () => void) => void
  readonly delete: (onChange: () => void) => void
}

/** Functions that are called when the status may have changed. Without any, nothing is compared. */
const makeWatchers = ({ models, leaving, stopping }: Pick<Gateway, "models" | "leaving" | "stopping">): Watchers => {
  const watchers = new Set<() => void>()
  const callAll = () => {
    for (const onChange of watchers) onChange()
  }
  let stop = constVoid
  return {
    get size() {
      return watchers.size
    },
    add: (onChange) => {
      watchers.add(onChange)
      if (watchers.size > 1) return
      const timer = setInterval(callAll, intervalMillis).unref()
      const ignore = models.onChange(callAll)
      leaving.addEventListener("abort", callAll)
      stopping.addEventListener("abort", callAll)
      stop = () => {
        clearInterval(timer)
        ignore()
        leaving.removeEventListener("abort", callAll)
        stopping.removeEventListener("abort", callAll)
      }
    },
    delete: (onChange) => {
      watchers.delete(onChange)
      if (watchers.size === 0) stop()
    },
  }
}
