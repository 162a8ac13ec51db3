/**
 * The permission of one instance to execute a batch. The instance holds its resources meanwhile. RateLimiter.ts grants
 * it; the dispatcher acquires and releases it.
 *
 *   idle ─ acquire ─► staged ─ the resources are free ─► granted ─ acquire ─► held ─ release ─► idle
 */
import { constVoid } from "effect/Function"
import type { Units } from "./Capacities.ts"

export type PermitState = "idle" | "staged" | "granted" | "held" | "closed"

/** Gives permits, and takes them back. */
export interface PermitIssuer {
  readonly acquire: (permit: Permit) => boolean
  readonly withdraw: (permit: Permit) => void
  readonly release: (permit: Permit, isReady: boolean) => void
}

export class Permit {
  /** Units that it needs, by pool. */
  readonly units: Units
  readonly #issuer: PermitIssuer
  readonly #weight: number
  state: PermitState = "idle"
  /** Executions that it has begun. */
  executions = 0
  /** Set by the dispatcher. Called when it is granted, which lasts until this returns: `acquire` holds it. */
  onGranted: () => void = constVoid

  /** `priority` 0 counts as 1. */
  constructor(issuer: PermitIssuer, units: Units, priority: number) {
    this.#issuer = issuer
    this.units = units
    this.#weight = Math.max(1, priority)
  }

  /** The permit of the lowest rank goes first: a granted one before all others. */
  get rank(): number {
    return this.state === "granted" ? -1 : this.executions * this.#weight
  }

  get isStaged(): boolean {
    return this.state === "staged"
  }

  /** Whether it holds its resources now. Otherwise it waits for them, up to `onGranted` or `withdraw`. */
  acquire(): boolean {
    return this.#issuer.acquire(this)
  }

  /** Ends the wait. A held permit stays. */
  withdraw(): void {
    this.#issuer.withdraw(this)
  }

  /** Ends a hold, with the batch. Does nothing unless it is held. `isReady`: the instance waits for its next batch. */
  release(isReady: boolean): void {
    this.#issuer.release(this, isReady)
  }
}
