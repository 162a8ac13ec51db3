/**
 * The NVIDIA GPUs of the machine, by their numbers, as far as the system tells without a library of theirs. Whether ONNX
 * Runtime can use them is known once a session is loaded.
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
