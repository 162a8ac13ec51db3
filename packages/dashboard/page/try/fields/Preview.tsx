/** The pixels of a picture, on a canvas. */
import { useEffect, useRef } from "preact/hooks"

export interface PreviewProps {
  readonly title: string
  readonly width: number
  readonly height: number
  /** Red, green, blue and alpha of each pixel, by rows. */
  readonly data: Uint8ClampedArray<ArrayBuffer>
}

export const Preview = ({ title, width, height, data }: PreviewProps) => {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    if (width > 0 && height > 0)
      canvas.current?.getContext("2d")?.putImageData(new ImageData(data, width, height), 0, 0)
  }, [data, width, height])
  return <canvas ref={canvas} class="pixels" role="img" aria-label={title} width={width} height={height} />
}
