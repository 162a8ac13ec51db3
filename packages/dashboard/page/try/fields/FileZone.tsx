/** A place to drop, paste or choose a file, or to take a picture with the camera of a phone. */
import { useState } from "preact/hooks"

export interface FileZoneProps {
  /** Such as "Picture for image". */
  readonly title: string
  /** Types for the browser's dialog, such as `image/*`. */
  readonly accept?: string
  readonly hasCamera?: boolean
  readonly onFile: (file: File) => void
}

export const FileZone = ({ title, accept, hasCamera = false, onFile }: FileZoneProps) => {
  const [isOver, setOver] = useState(false)
  const take = (data: DataTransfer | null, event: Event) => {
    const file = data?.files[0]
    if (file === undefined) return
    event.preventDefault()
    event.stopPropagation()
    onFile(file)
  }
  const choose = (event: { readonly currentTarget: HTMLInputElement }) => {
    const file = event.currentTarget.files?.[0]
    // The same file can be chosen again, after it has changed.
    event.currentTarget.value = ""
    if (file !== undefined) onFile(file)
  }
  return (
    <div
      class={isOver ? "file-zone over" : "file-zone"}
      role="group"
      aria-label={title}
      tabIndex={0}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false)
        take(event.dataTransfer, event)
      }}
      onPaste={(event) => take(event.clipboardData, event)}
    >
      <span class="quiet">Drop or paste here, or</span>
      <label class="button plain">
        Choose a file
        <input type="file" class="hidden-input" accept={accept} onChange={choose} />
      </label>
      {hasCamera && (
        <label class="button plain">
          Camera
          <input type="file" class="hidden-input" accept="image/*" capture="environment" onChange={choose} />
        </label>
      )}
    </div>
  )
}
