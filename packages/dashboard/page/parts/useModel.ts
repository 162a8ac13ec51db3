/** The description of a model, as it arrives. */
import { useEffect, useState } from "preact/hooks"
import type { Model } from "../api/Model.ts"
import { describe, index } from "../api/models.ts"
import { Refusal } from "../api/Refusal.ts"

export interface Described {
  readonly model?: Model
  readonly problem?: Refusal
}

/** `isReady`: no model is described before. */
export const useModel = (name: string, version: string, isReady = true): Described => {
  const [described, setDescribed] = useState<Described>({})
  const models = index.value
  useEffect(() => {
    if (!isReady) return setDescribed({})
    let isCurrent = true
    const set = (value: Described) => isCurrent && setDescribed(value)
    describe(name, version).then(
      (model) => set({ model }),
      (error: unknown) => set({ problem: Refusal.of(error) }),
    )
    return () => void (isCurrent = false)
  }, [name, version, models, isReady])
  return described
}
