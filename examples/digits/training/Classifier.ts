/**
 * Runs the finished ONNX file with ONNX Runtime on the calling thread, for measurements and tests. Servers use a worker
 * instead.
 */
import { InferenceSession, Tensor } from "onnxruntime-node"
import { side } from "./Mnist.ts"

export interface Classification {
  readonly digit: number
  /** Difference between the logits of the digit and the runner-up. */
  readonly margin: number
}

/** Answers any number of 28×28 images (0..1, 1 = ink) in one run. */
export type Classifier = (images: ReadonlyArray<Float32Array>) => Promise<ReadonlyArray<Classification>>

export const load = async (model: Uint8Array): Promise<Classifier> => {
  const session = await InferenceSession.create(model, { intraOpNumThreads: 1 })
  return async (images) => {
    const values = new Float32Array(images.length * side * side)
    for (const [row, image] of images.entries()) values.set(image, row * side * side)
    const { logits } = await session.run({ image: new Tensor("float32", values, [images.length, 1, side, side]) })
    if (!(logits?.data instanceof Float32Array) || logits.dims.join() !== `${images.length},10`) {
      throw new Error(`logits is ${logits?.type} [${logits?.dims}]; float32 [${images.length},10] was expected`)
    }
    const { data } = logits
    return images.map((_, row) => classificationOf(data.subarray(10 * row, 10 * (row + 1))))
  }
}

const classificationOf = (logits: Float32Array): Classification => {
  const [greatest, second] = logits.toSorted((one, other) => other - one)
  return { digit: logits.indexOf(greatest!), margin: greatest! - second! }
}
