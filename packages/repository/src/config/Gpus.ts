/**
 * Numbers of the machine's NVIDIA GPUs, from the operating system, without NVIDIA's libraries. Loading a session shows
 * whether ONNX Runtime can use them.
 */
import { readdirSync } from "node:fs"

/** None where the driver is not there. */
export const numbers = (driver = "/proc/driver/nvidia/gpus"): ReadonlyArray<number> => {
  try {
    return readdirSync(driver).map((_, index) => index)
  } catch {
    return []
  }
}
