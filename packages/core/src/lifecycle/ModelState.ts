/**
 * The states of one load of a model version, and the transitions between them. Pure: ModelVersion.ts makes the
 * transitions.
 *
 *   wanted ──► loading ──► ready ──► draining ──► gone
 *     │ │         │ │      │   ▲        ▲          ▲
 *     │ │         │ ▼      ▼   │        │          │
 *     │ └─────────┴──► failed ─┴────────┴──────────┤
 *     └───────────┴────────────────────────────────┘
 *
 * A failed version becomes ready again only if it is loaded and had lost a model that it is made of.
 * docs/architecture.md says what callers see in each state.
 */

/**
 * - `wanted`: its load has not begun. A variant of a family waits for memory in this state.
 * - `loading`: its instances are being built, warm-up included.
 * - `ready`: it is loaded and can serve requests.
 * - `draining`: no further requests reach it; it answers those that it has accepted.
 * - `gone`: its instances have ended.
 * - `failed`: it cannot be loaded, or cannot run with the other models that there are; the reason says why.
 */
export type ModelState = "wanted" | "loading" | "ready" | "draining" | "gone" | "failed"

const successors: { readonly [S in ModelState]: ReadonlyArray<ModelState> } = {
  wanted: ["loading", "failed", "gone"],
  loading: ["ready", "failed", "gone"],
  ready: ["failed", "draining"],
  failed: ["ready", "draining", "gone"],
  draining: ["gone"],
  gone: [],
}

/** Whether there is a transition from one state to the other. */
export const mayFollow = (from: ModelState, to: ModelState): boolean => successors[from].includes(to)
