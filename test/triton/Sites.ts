/** The sites of scenarios: a Triton with Python models, and a Nereid with scripts. */
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { plus } from "../fixtures/repository.ts"
import * as PythonModel from "./PythonModel.ts"
import type { Scenario, Site } from "./Scenarios.ts"
import * as TritonServer from "./TritonServer.ts"

/** A version of a model: its file, and the content. */
interface Write {
  readonly version: (directory: string, amount: number | undefined) => readonly [string, string | Uint8Array]
  /** It records executions in the directory `at`. */
  readonly held: (directory: string, at: string) => readonly [string, string]
}

const python: Write = {
  version: (directory, amount) => [
    `${directory}/model.py`,
    amount === undefined
      ? "raise Exception('no model')"
      : PythonModel.program({
          name: "",
          config: "",
          code: `outputs = [pb_utils.Tensor("Y", get(request, "X") + np.float32(${amount}))]`,
        }),
  ],
  held: (directory, at) => [
    `${directory}/model.py`,
    `import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        ids = [request.request_id() for request in requests]
        with open("${at}/log", "a") as log:
            log.write("+".join(ids) + "\\n")
        while "hold" in ids and not os.path.exists("${at}/gate"):
            time.sleep(0.01)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy())]) for request in requests]
`,
  ],
}

const script: Write = {
  version: (directory, amount) =>
    directory.startsWith("bare/")
      ? [`${directory}/model.onnx`, plus(amount ?? 0)]
      : [
          `${directory}/model.js`,
          amount === undefined
            ? "throw new Error('no model')"
            : `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({
  Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x + ${amount}).buffer)) })) }`,
        ],
  held: (directory, at) => [
    `${directory}/model.js`,
    `import { appendFileSync, existsSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
export default { execute: async (requests) => {
  const ids = requests.map(({ id }) => id)
  appendFileSync("${at}/log", ids.join("+") + "\\n")
  while (ids.includes("hold") && !existsSync("${at}/gate")) await setTimeout(10)
  return requests.map(({ inputs: { X } }) => ({ Y: X }))
} }`,
  ],
}

/** Errors up to the reason, which only one of them may have; the names of the backends differ. */
const errorOf = (status: number, text: string): string => {
  if (status === 200) return "200"
  const { error = "" } = text === "" ? {} : (JSON.parse(text) as { readonly error?: string })
  return error.replace(/(failed to poll from model repository|state: \w+).*/s, "$1")
}

/** The last directory has no models; it is for what models record. */
const siteOf = (write: Write, directories: ReadonlyArray<string>, port: () => number): Site => {
  const request = async (path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
    const response = await fetch(`http://127.0.0.1:${port()}/v2/${path}`, init)
    return { status: response.status, text: await response.text() }
  }
  const [records = ""] = directories.slice(-1)
  const put = (path: string, content: string | Uint8Array, repository: number) => {
    const file = join(directories[repository] ?? "", path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  return {
    model: (name, version, amount, repository = 0) => put(...write.version(`${name}/${version}`, amount), repository),
    write: (path, content, repository = 0) => put(path, content, repository),
    remove: (path, repository = 0) => rmSync(join(directories[repository] ?? "", path), { recursive: true }),
    load: async (name, config) => {
      const parameters = config === undefined ? {} : { config: JSON.stringify(config) }
      const { status, text } = await request(`repository/models/${name}/load`, { parameters })
      return errorOf(status, text)
    },
    unload: async (name) => {
      const { status, text } = await request(`repository/models/${name}/unload`, {})
      return errorOf(status, text)
    },
    infer: async (name, version) => {
      const path = version === undefined ? name : `${name}/versions/${version}`
      const inputs = [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }]
      const { status, text } = await request(`models/${path}/infer`, { inputs })
      return status === 200 ? String(JSON.parse(text).outputs[0].data[0]) : String(status)
    },
    index: async () => {
      const entries: ReadonlyArray<Readonly<Record<string, string>>> = JSON.parse(
        (await request("repository/index", {})).text,
      )
      return entries.map(({ name, version, state, reason }) => [name, version, state, reason].join(" ")).join(", ")
    },
    config: async (name) => JSON.parse((await request(`models/${name}/config`)).text),
    ready: async (path) => (await request(path)).status,
    held: (name, config) => {
      put(...write.held(`${name}/1`, records), 0)
      put(`${name}/config.pbtxt`, config, 0)
    },
    send: async (name, id, given = {}, rows = 1) => {
      const { columns = 1, ...parameters }: { readonly columns?: number } = given
      const data = Array.from({ length: rows * columns }, () => 0)
      const inputs = [{ name: "X", datatype: "FP32", shape: [rows, columns], data }]
      const { status, text } = await request(`models/${name}/infer`, { id, parameters, inputs })
      return status === 200 ? "200" : `${status} ${JSON.parse(text).error}`
    },
    executed: () => (existsSync(join(records, "log")) ? readFileSync(join(records, "log"), "utf8").trim() : ""),
    open: () => writeFileSync(join(records, "gate"), ""),
  }
}

const temporary = (count: number) => Array.from({ length: count }, () => mkdtempSync(join(tmpdir(), "nereid-triton-")))

/** Runs a scenario against Triton. */
export const triton = async (program: string, scenario: Scenario): Promise<ReadonlyArray<unknown>> => {
  const directories = temporary((scenario.repositories ?? 1) + 1)
  let port = 0
  const site = siteOf(python, directories, () => port)
  scenario.prepare(site)
  const [first = "", ...more] = directories.slice(0, -1)
  const flags = [
    ...more.map((directory) => `--model-repository=${directory}`),
    `--model-control-mode=${scenario.control}`,
    "--repository-poll-secs=1",
    "--exit-on-error=false",
    ...(scenario.strict === true ? ["--strict-model-config=true"] : []),
  ]
  const server = await TritonServer.start(program, first, flags)
  try {
    port = server.http
    return await scenario.run(site)
  } finally {
    await server[Symbol.asyncDispose]()
    for (const directory of directories) rmSync(directory, { recursive: true })
  }
}

/** Runs a scenario against Nereid. */
export const nereid = async (scenario: Scenario): Promise<ReadonlyArray<unknown>> => {
  const directories = temporary((scenario.repositories ?? 1) + 1)
  const [first = "", ...more] = directories.slice(0, -1)
  let port = 0
  const site = siteOf(script, directories, () => port)
  scenario.prepare(site)
  const repository = Repository.layer({
    directories: [first, ...more],
    control: scenario.control,
    pollInterval: "1 second",
    exitOnError: false,
    autoComplete: scenario.strict !== true,
  })
  const free = { host: "127.0.0.1", port: 0 }
  const server = await Server.start([], repository, { http: free, grpc: false, metrics: false })
  try {
    port = server.http.port
    return await scenario.run(site)
  } finally {
    await server.stop()
    for (const directory of directories) rmSync(directory, { recursive: true })
  }
}
