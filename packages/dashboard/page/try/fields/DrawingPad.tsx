/** A place to draw with mouse, finger or pen: white on black. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { Grey } from "../tensor/Drawing.ts"

export interface DrawingPadProps {
  readonly title: string
  /** Of the wanted picture, for the proportions. */
  readonly width: number
  readonly height: number
  /** The drawing after each stroke; undefined for an empty one. */
  readonly onDrawing: (drawing: Grey | undefined) => void
}

/** Pixels of the longer side. */
const side = 280

/** Strokes that can be taken back. */
const maxUndo = 50

export const DrawingPad = ({ title, width, height, onDrawing }: DrawingPadProps) => {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [pen, setPen] = useState(8)
  const last = useRef<readonly [number, number] | undefined>(undefined)
  const before = useRef<Array<ImageData>>([])
  const scale = side / Math.max(width, height)
  const size = { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }

  const clear = () => {
    const context = contextOf(canvas.current)
    if (context !== undefined) {
      context.fillStyle = "#000"
      context.fillRect(0, 0, size.width, size.height)
    }
    before.current = []
    onDrawing(undefined)
  }
  useEffect(clear, [size.width, size.height])

  const positionOf = ({ clientX, clientY }: MouseEvent): readonly [number, number] => {
    const box = canvas.current?.getBoundingClientRect()
    if (box === undefined || box.width === 0 || box.height === 0) return [0, 0]
    return [((clientX - box.left) / box.width) * size.width, ((clientY - box.top) / box.height) * size.height]
  }
  const drawTo = (position: readonly [number, number], pressure: number) => {
    const context = contextOf(canvas.current)
    if (context === undefined) return
    const [fromX, fromY] = last.current ?? position
    context.strokeStyle = "#fff"
    context.lineCap = "round"
    // A pen draws thicker when it is pressed; a mouse always has the pressure 0.5.
    context.lineWidth = (side * pen * (pressure > 0 ? 0.5 + pressure : 1)) / 100
    context.beginPath()
    context.moveTo(fromX, fromY)
    context.lineTo(position[0] + 0.01, position[1])
    context.stroke()
    last.current = position
  }
  const finish = () => {
    if (last.current === undefined) return
    last.current = undefined
    report()
  }
  const report = () => {
    const pixels = contextOf(canvas.current)?.getImageData(0, 0, size.width, size.height)
    if (pixels === undefined) return
    const data = Uint8Array.from({ length: size.width * size.height }, (_, pixel) => pixels.data[4 * pixel] ?? 0)
    onDrawing({ ...size, data })
  }
  return (
    <div>
      <canvas
        ref={canvas}
        class="drawing"
        role="img"
        aria-label={`${title}. To fill in the values without a pointer, select another source.`}
        {...size}
        onPointerDown={(event) => {
          if (event.button !== 0) return
          event.preventDefault()
          event.currentTarget.setPointerCapture(event.pointerId)
          const pixels = contextOf(canvas.current)?.getImageData(0, 0, size.width, size.height)
          if (pixels !== undefined) before.current = [...before.current, pixels].slice(-maxUndo)
          drawTo(positionOf(event), event.pressure)
        }}
        onPointerMove={(event) => {
          if (last.current === undefined) return
          const all = event.getCoalescedEvents?.() ?? []
          for (const one of all.length > 0 ? all : [event]) drawTo(positionOf(one), one.pressure)
        }}
        onPointerUp={finish}
        onPointerCancel={finish}
      />
      <div class="row">
        <button type="button" class="plain" onClick={clear}>
          Clear
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => {
            const pixels = before.current.pop()
            if (pixels === undefined) return
            contextOf(canvas.current)?.putImageData(pixels, 0, 0)
            if (before.current.length === 0) onDrawing(undefined)
            else report()
          }}
        >
          Undo
        </button>
        <label class="short">
          Pen
          <input
            type="range"
            min={2}
            max={20}
            value={pen}
            onInput={(event) => setPen(event.currentTarget.valueAsNumber)}
          />
        </label>
      </div>
    </div>
  )
}

const contextOf = (canvas: HTMLCanvasElement | null): CanvasRenderingContext2D | undefined =>
  canvas?.getContext("2d", { willReadFrequently: true }) ?? undefined
