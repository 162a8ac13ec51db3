/**
 * The states of one load of a model version, and which of them may follow each other. Pure: ModelVersion.ts moves through them.
 *
 *   pending ─► loading ──► ready ──► draining ──► ended
 *     │           │        │   ▲         ▲         ▲
 *     │           │        ▼   │         │         │
 *     └───────────┴─────► failed ────────┴─────────┘
 *
 * A failed version becomes ready again only where it is loaded and had lost a model that it is made of. What callers see in each
 * state is in docs/architecture.md.
 */

/**
 * - `pending`: a load was requested and waits for its turn.
 * - `loading`: it is being built, warm-up included.
 * - `ready`: it is loaded, and requests reach it.
 * - `draining`: no further requests reach it; it answers those that it has accepted.
 * - `ended`: its instances have ended.
 * - `failed`: it cannot be loaded, or cannot run with the other models that there are; the reason says why.
 */
export type ModelState = "pending" | "loading" | "ready" | "draining" | "ended" | "failed"

const successors: { readonly [S in ModelState]: ReadonlyArray<ModelState> } = {
  pending: ["loading", "failed", "ended"],
  loading: ["ready", "failed", "ended"],
  ready: ["failed", "draining"],
  failed: ["ready", "draining", "ended"],
  draining: ["ended"],
  ended: [],
}

/** Whether the machine has a transition from one state to the other. */
export const mayFollow = (from: ModelState, to: ModelState): boolean => successors[from].includes(to)
