/** Unloads a model, after a confirmation. */
import { useState } from "preact/hooks"
import { unload } from "../api/models.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { Problem } from "../parts/Problem.tsx"
import { useTask } from "../parts/useTask.ts"

export interface UnloadModelProps {
  readonly name: string
  readonly isEnsemble: boolean
}

export const UnloadModel = ({ name, isEnsemble }: UnloadModelProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="danger" onClick={() => setOpen(true)}>
        Unload…
      </button>
      {isOpen && <UnloadDialog name={name} isEnsemble={isEnsemble} onClose={() => setOpen(false)} />}
    </>
  )
}

const UnloadDialog = ({ name, isEnsemble, onClose }: UnloadModelProps & { readonly onClose: () => void }) => {
  const [dependents, setDependents] = useState(false)
  const { isRunning, problem, run } = useTask()
  return (
    <Dialog title={`Unload ${name}?`} onClose={onClose}>
      <p>All its versions stop answering. Requests in flight are answered.</p>
      {isEnsemble && (
        <label class="check">
          <input type="checkbox" checked={dependents} onInput={(e) => setDependents(e.currentTarget.checked)} />
          Unload the models of this ensemble as well
        </label>
      )}
      {problem !== undefined && <Problem title="The model was not unloaded." refusal={problem} />}
      <p class="buttons">
        <button
          type="button"
          class="danger"
          disabled={isRunning}
          onClick={() =>
            run(async () => {
              await unload(name, dependents)
              onClose()
            })
          }
        >
          {isRunning ? "Unloading…" : "Unload"}
        </button>
        <button type="button" class="plain" onClick={onClose}>
          Cancel
        </button>
      </p>
    </Dialog>
  )
}
