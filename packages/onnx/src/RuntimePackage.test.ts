import { expect, it } from "vitest"
import { problem, RuntimeNotInstalled } from "./RuntimePackage.ts"

const failed = (message: string, code: string) => Object.assign(new Error(message), { code })

const missing = failed("Cannot find package 'onnxruntime-node' imported from /app/worker.js", "ERR_MODULE_NOT_FOUND")

it.each([
  [
    "linux",
    "x64",
    'run "ONNXRUNTIME_NODE_INSTALL=skip npm install onnxruntime-node" (without the variable, the install also downloads CUDA libraries)',
  ],
  ["linux", "arm64", 'run "npm install onnxruntime-node"'],
  ["darwin", "arm64", 'run "npm install onnxruntime-node"'],
  ["win32", "x64", 'run "npm install onnxruntime-node"'],
] as const)("gives the command for %s %s if the package is missing", (platform, arch, remedy) => {
  const error = problem(missing, platform, arch)
  expect(error).toBeInstanceOf(RuntimeNotInstalled)
  expect(error).toMatchObject({ message: `ONNX Runtime is not installed: ${remedy}`, remedy })
})

it.each([
  ["a missing system library", "libstdc++.so.6: cannot open shared object file: No such file or directory"],
  ["another libc", "Error loading shared library ld-linux-x86-64.so.2: No such file or directory"],
  ["a missing dependency of the package", "Cannot find package 'onnxruntime-common' imported from /app/x.js"],
])("keeps the reason of another failure: %s", (_, reason) => {
  for (const code of ["ERR_DLOPEN_FAILED", "ERR_MODULE_NOT_FOUND"]) {
    const error = problem(failed(reason, code), "linux", "x64")
    expect(error).not.toBeInstanceOf(RuntimeNotInstalled)
    expect(error.message).toBe(`ONNX Runtime (onnxruntime-node) cannot be loaded on linux x64: ${reason}`)
  }
})

it("leaves out the files that required the native part", () => {
  const error = problem(
    failed("Cannot find module '../bin/napi-v6/linux/s390x/b.node'\nRequire stack:\n- /app/a.js", "MODULE_NOT_FOUND"),
    "linux",
    "s390x",
  )
  expect(error.message).toBe(
    "ONNX Runtime (onnxruntime-node) cannot be loaded on linux s390x: Cannot find module '../bin/napi-v6/linux/s390x/b.node'",
  )
})
