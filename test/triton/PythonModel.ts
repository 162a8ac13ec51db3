/** A model of a repository for Triton's Python backend: its configuration, and the source of its `model.py`. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

export interface PythonModel {
  readonly name: string
  /** Without the backend. */
  readonly config: string | Uint8Array
  /** Lines of `execute` that set `outputs`, a list of tensors, or `error` for each `request`. Default: output X is X. */
  readonly code?: string
  /** Lines that send responses by `sender`, instead of `code`. */
  readonly decoupled?: string
  /** Lines of `initialize`, with `self` and `args`. */
  readonly initialize?: string
  readonly versions?: ReadonlyArray<number>
  readonly files?: { readonly [file: string]: string | Uint8Array }
}

/** Y is X. */
export const echoToY = `outputs = [pb_utils.Tensor("Y", get(request, "X"))]`

const echo = `outputs = [pb_utils.Tensor("X", get(request, "X"))]`

const indented = (text: string, spaces = 12) => text.replaceAll(/^/gm, " ".repeat(spaces))

/** The source of its `model.py`. */
export const program = ({ code = echo, decoupled, initialize = "" }: PythonModel) => `import json
import time
import numpy as np
import triton_python_backend_utils as pb_utils

def get(request, name):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()

class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.version = int(args["model_version"])
${indented(initialize, 8)}

    def execute(self, requests):
        responses = []
        for request in requests:
            outputs, error = [], None
${
  decoupled === undefined
    ? `${indented(code)}\n${indented("responses.append(pb_utils.InferenceResponse(outputs, error))")}\n        return responses`
    : `${indented("sender = request.get_response_sender()")}\n${indented(decoupled)}\n${indented(
        "sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)",
      )}\n        return None`
}
`

/** Writes the directory of a model. */
export const write = (repository: string, model: PythonModel): void => {
  const { name, config, versions = [1], files = {} } = model
  const put = (path: string, content: string | Uint8Array) => {
    const file = join(repository, name, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  const isNamed = /\b(?:backend|platform)\s*:/.test(Buffer.from(config).toString("latin1"))
  put("config.pbtxt", isNamed ? config : Buffer.concat([Buffer.from(config), Buffer.from('\nbackend: "python"\n')]))
  for (const version of versions) put(`${version}/model.py`, program(model))
  for (const [path, content] of Object.entries(files)) put(path, content)
}
