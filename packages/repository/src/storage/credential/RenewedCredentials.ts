/** Credentials that may expire, and are renewed before they do. */
import { Clock, Effect, Result, Semaphore } from "effect"
import type { StoreProblem } from "../http/StoreProblem.ts"

export interface Issued<A> {
  readonly value: A
  /** Milliseconds since 1970; undefined for credentials that do not expire. */
  readonly expiresAt: number | undefined
}

/** Milliseconds before the end of credentials at which they are renewed; those that live less, after most of it. */
const margin = 5 * 60_000

/** Part of the life of short credentials. */
const shortMargin = 0.2

interface Held<A> extends Issued<A> {
  readonly issuedAt: number
}

export class RenewedCredentials<A> {
  readonly #issue: Effect.Effect<Issued<A>, StoreProblem>
  readonly #turn = Semaphore.makeUnsafe(1)
  #held: Held<A> | undefined

  constructor(issue: Effect.Effect<Issued<A>, StoreProblem>) {
    this.#issue = issue
  }

  /** Current credentials. A renewal that fails is no problem as long as the earlier ones are valid. */
  get current(): Effect.Effect<A, StoreProblem> {
    return this.#turn.withPermit(
      Effect.gen({ self: this }, function* () {
        const now = yield* Clock.currentTimeMillis
        const held = this.#held
        if (held !== undefined && now < renewalOf(held)) return held.value
        const issued = yield* Effect.result(this.#issue)
        if (Result.isFailure(issued)) {
          if (held?.expiresAt !== undefined && now < held.expiresAt) return held.value
          return yield* issued.failure
        }
        this.#held = { ...issued.success, issuedAt: now }
        return issued.success.value
      }),
    )
  }

  /** Forgets credentials that a store has refused, so that the next request has others. */
  refused(value: A): void {
    if (this.#held?.value === value) this.#held = undefined
  }
}

const renewalOf = <A>({ expiresAt, issuedAt }: Held<A>): number =>
  expiresAt === undefined ? Infinity : expiresAt - Math.min(margin, (expiresAt - issuedAt) * shortMargin)
