/** Lines of the rate limiter: cases of RepositoryLines.ts prove those of all schedulers, and tests here the others. */
import { lines } from "./SequenceLine.ts"

export const rateLimiter = lines({
  all: {
    "L4.waits": "a request of a sequence waits for resources, as pending, and the wait is queue time",
  },
  both: {
    "L4.off": ["without the rate limiter, resources have no effect", "A12.rate-limiter.off"],
    "L4.shared": ["executions that share a resource take turns", "A12.rate-limiter.shared"],
    "L4.global": ["a global resource is one pool", "A12.rate-limiter.global"],
    "L4.default": ["capacities are the largest need of the loaded instances", "A12.rate-limiter.default"],
    "L4.unlisted": ["with limits, others have capacity 0", "A12.rate-limiter.limits.unlisted"],
    "L4.limits": ["a need beyond its limit fails the load", "A12.rate-limiter.limits"],
    "L4.limits-global": ["a global one has the largest limit", "A12.rate-limiter.limits.global"],
    "L4.kinds": ["a resource is global or of devices", "A12.rate-limiter.kinds"],
    "L4.order": ["the fewest executions, times priority, go first", "A12.rate-limiter.order"],
    "L4.fresh": ["a model that was just loaded catches up", "A12.rate-limiter.order.fresh"],
    "L4.head": ["none passes the first one that waits", "A12.rate-limiter.head"],
    "L4.pending": ["a wait counts as pending", "A12.rate-limiter.pending"],
    "L4.update": ["a change of instances applies", "A12.rate-limiter.update"],
    "L4.update-failed": ["one that fails leaves the old instances", "A12.rate-limiter.update.failed"],
  },
  stream: {
    "L4.instance": "a sequence stays on its instance, which the limiter delays only",
  },
  command: {
    "L4.flags": ["--rate-limit and --rate-limit-resource", "A12.rate-limiter"],
    "L4.exit": ["a start that lacks resources ends with 1", "A12.rate-limiter.exit"],
  },
})
