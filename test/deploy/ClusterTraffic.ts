/** Traffic of sessions in a cluster: each sends its next request an interval after its last response. */
import { Effect, Exit, Scope } from "effect"
import type { Sums } from "../../packages/cluster/src/Sums.fixture.ts"

/** The model of the guide, which has the types of the fixture. */
export type SumsModel = typeof Sums

type SumsCalls = SumsModel["Service"]

/** The response of one request, or its error. */
export interface Reply {
  readonly sentAt: number
  readonly at: number
  /** Tag of an error, or why a response is wrong; undefined for the right response. */
  readonly problem: string | undefined
}

export class ClusterTraffic implements AsyncDisposable {
  /** Replies of each session, in their order. */
  readonly replies: ReadonlyArray<Array<Reply>>
  readonly #loops: Promise<unknown>
  #isOver = false

  constructor(run: <A>(effect: Effect.Effect<A>) => Promise<A>, sums: SumsCalls, sessions: number, interval: number) {
    this.replies = Array.from({ length: sessions }, () => [])
    this.#loops = Promise.all(this.replies.map((replies) => run(this.#loop(sums, replies, interval))))
  }

  /** Completes when each session has had `count` right responses to requests that were sent after a moment. */
  async answered(since: number, count = 1): Promise<void> {
    const isDone = (replies: ReadonlyArray<Reply>) =>
      replies.filter(({ sentAt, problem }) => sentAt >= since && problem === undefined).length >= count
    while (!this.replies.every(isDone)) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** The longest time of each session between two right responses, in milliseconds, since a moment. */
  pauses(since: number): ReadonlyArray<number> {
    return this.replies.map((replies) => {
      let last = since
      let longest = 0
      for (const { at, problem } of replies) {
        if (at < since || problem !== undefined) continue
        longest = Math.max(longest, at - last)
        last = at
      }
      return longest
    })
  }

  problems(since: number): ReadonlyArray<string> {
    return this.replies.flatMap((replies) =>
      replies.flatMap(({ sentAt, problem }) => (sentAt < since || problem === undefined ? [] : [problem])),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#loops
  }

  #loop(sums: SumsCalls, replies: Array<Reply>, interval: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (!this.#isOver) {
        // A session that is lost is followed by a new one.
        const scope = yield* Scope.make()
        const session = yield* Scope.provide(sums.session(), scope)
        let expected = 0
        for (let isLost = false; !isLost && !this.#isOver;) {
          const sentAt = performance.now()
          const exit = yield* Effect.exit(session.infer({ VALUE: 1 }))
          let problem: string | undefined
          if (Exit.isSuccess(exit)) {
            expected += 1
            if (exit.value.TOTAL !== expected) problem = `total ${exit.value.TOTAL} in place of ${expected}`
          } else {
            const error = Exit.findErrorOption(exit)
            problem = error._tag === "Some" ? JSON.stringify(error.value) : String(exit.cause)
            isLost = error._tag === "Some" && error.value._tag === "SequenceNotFound"
          }
          replies.push({ sentAt, at: performance.now(), problem })
          yield* Effect.sleep(interval)
        }
        yield* Scope.close(scope, Exit.void)
      }
    })
  }
}

/** Median and maximum, in milliseconds. */
export const summary = (values: ReadonlyArray<number>): { readonly median: number; readonly max: number } => {
  const sorted = values.toSorted((one, other) => one - other)
  return { median: Math.round(sorted[sorted.length >> 1] ?? 0), max: Math.round(sorted.at(-1) ?? 0) }
}
