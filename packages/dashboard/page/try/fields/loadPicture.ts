/** Decodes a picture's file in the browser. */
import { Invalid } from "../Invalid.ts"

export type Fit = "stretch" | "contain" | "cover"

export const fits: Readonly<Record<Fit, string>> = {
  cover: "cut to fit",
  contain: "with black margins",
  stretch: "stretched",
}

/** Largest file, in bytes. */
const maxSize = 64 * 1024 * 1024

export const loadPicture = async (file: Blob): Promise<ImageBitmap> => {
  if (file.size > maxSize) throw new Invalid(`the file is larger than ${maxSize} bytes`)
  try {
    return await createImageBitmap(file)
  } catch {
    throw new Invalid("this is not a picture that the browser can decode")
  }
}

/** The pixels of a picture at another size. */
export const resize = (picture: ImageBitmap, width: number, height: number, fit: Fit): ImageData => {
  const canvas = document.createElement("canvas")
  canvas.width = width
  canvas.height = height
  const context = canvas.getContext("2d", { willReadFrequently: true })
  if (context === null) throw new Invalid("the browser has no memory for this picture")
  const across = width / picture.width
  const down = height / picture.height
  const scale = fit === "cover" ? Math.max(across, down) : Math.min(across, down)
  const [wide, tall] = fit === "stretch" ? [width, height] : [picture.width * scale, picture.height * scale]
  context.fillStyle = "#000"
  context.fillRect(0, 0, width, height)
  context.imageSmoothingQuality = "high"
  context.drawImage(picture, (width - wide) / 2, (height - tall) / 2, wide, tall)
  return context.getImageData(0, 0, width, height)
}
