/**
 * Imports ONNX Runtime, the optional peer dependency `onnxruntime-node`, and explains why it cannot be imported. Files
 * that run in a session's thread import the package directly, after this module has done it. Effect-free.
 */
import type * as OnnxRuntime from "onnxruntime-node"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** The package is not installed. */
export class RuntimeNotInstalled extends Error {
  override readonly name = "RuntimeNotInstalled"
  /** How to install it, with the command. */
  readonly remedy: string

  constructor(remedy: string) {
    super(`ONNX Runtime is not installed: ${remedy}`)
    this.remedy = remedy
  }
}

/**
 * Rejects with a RuntimeNotInstalled, or with an Error that has the cause, such as a missing system library.
 */
export const load = async (): Promise<typeof OnnxRuntime> => {
  try {
    return await import("onnxruntime-node")
  } catch (error) {
    throw problem(error, process.platform, process.arch)
  }
}

/** The error to show for a failed import on this platform and processor, as Node names them. */
export const problem = (error: unknown, platform: NodeJS.Platform, arch: NodeJS.Architecture): Error => {
  if (isNotInstalled(error)) return new RuntimeNotInstalled(remedy(platform, arch))
  // Node appends the files that required a missing one, which are all inside the package.
  const [reason = ""] = errorMessage(error).split("\nRequire stack:")
  const message = `ONNX Runtime (onnxruntime-node) cannot be loaded on ${platform} ${arch}: ${reason.trim()}`
  return new Error(message, { cause: error })
}

/** Only the package itself: a file or a dependency that it lacks has another remedy. */
const isNotInstalled = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  error.code === "ERR_MODULE_NOT_FOUND" &&
  error.message.startsWith("Cannot find package 'onnxruntime-node'")

/** Only on Linux x64 does the install script of the package download anything. */
const remedy = (platform: NodeJS.Platform, arch: NodeJS.Architecture): string =>
  platform === "linux" && arch === "x64"
    ? 'run "ONNXRUNTIME_NODE_INSTALL=skip npm install onnxruntime-node" (without the variable, the install also downloads CUDA libraries)'
    : 'run "npm install onnxruntime-node"'
