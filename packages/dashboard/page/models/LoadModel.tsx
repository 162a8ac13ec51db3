/** Loads a model by its name, or unloads one: where the server's model control mode allows it. */
import { useState } from "preact/hooks"
import { load } from "../api/models.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { Problem } from "../parts/Problem.tsx"
import { useTask } from "../parts/useTask.ts"

export interface LoadModelProps {
  /** The model to load again; undefined to ask for a name. */
  readonly name?: string
}

export const LoadModel = ({ name: fixed }: LoadModelProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {fixed === undefined ? "Load a model…" : "Load again…"}
      </button>
      {isOpen && <LoadDialog fixed={fixed} onClose={() => setOpen(false)} />}
    </>
  )
}

interface LoadDialogProps {
  readonly fixed: string | undefined
  readonly onClose: () => void
}

const LoadDialog = ({ fixed, onClose }: LoadDialogProps) => {
  const [name, setName] = useState(fixed ?? "")
  const [config, setConfig] = useState("")
  const { isRunning, problem, run } = useTask()
  return (
    <Dialog title={fixed === undefined ? "Load a model" : `Load ${fixed} again`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          run(async () => {
            await load(name, config.trim() === "" ? undefined : config)
            onClose()
          })
        }}
      >
        {fixed === undefined ? (
          <label>
            Name
            <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        ) : (
          <p>Its directory is read again. The present version answers until the new one is ready.</p>
        )}
        <label>
          Configuration override, as JSON (optional)
          <textarea
            rows={5}
            spellcheck={false}
            placeholder='{"max_batch_size": 16}'
            value={config}
            onInput={(event) => setConfig(event.currentTarget.value)}
          />
        </label>
        {problem !== undefined && <Problem title="The model was not loaded." refusal={problem} />}
        <p class="buttons">
          <button type="submit" disabled={isRunning || name === ""}>
            {isRunning ? "Loading…" : "Load"}
          </button>
          <button type="button" class="plain" onClick={onClose}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  )
}
