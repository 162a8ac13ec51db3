/** Services of a server that the code of a Python model uses: other models, their loads, metrics, readiness. */
import { assert, describe, it } from "@effect/vitest"
import { Tensor } from "@nereid/core"
import { ModelNotFound } from "@nereid/core/Errors"
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { ExecutionResult } from "@nereid/core/internal/instance/Instance"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import * as Interpreter from "@nereid/python/internal/environment/Interpreter"
import * as ProcessEnvironment from "@nereid/python/internal/environment/ProcessEnvironment"
import type { MetricOperation, ModelCall, ModelControl, ModelPorts } from "@nereid/python/internal/process/ModelPorts"
import * as PythonInstances from "@nereid/python/internal/process/PythonInstances"
import { Effect, type Exit, Result } from "effect"
import { join } from "node:path"
import { python } from "./fixtures/python.ts"

const folder = join(import.meta.dirname, "python/models")

const text = (name: string): TensorSpec => ({ name, datatype: "BYTES", dims: [1], optional: false })

/** All that a model has asked for. */
interface Asked {
  readonly calls: Array<ModelCall>
  readonly controls: Array<ModelControl>
  readonly operations: Array<MetricOperation>
}

const numbers = (...values: ReadonlyArray<number>) => [
  { name: "OUT", tensor: Tensor.make("FP32", [values.length], Float32Array.from(values)) },
]

const portsOf = ({ calls, controls, operations }: Asked): ModelPorts => ({
  call: (call, { respond, end }) => {
    calls.push(call)
    const response = { model: "other", version: "2", outputs: numbers(1, 2), parameters: { half: 0.5, big: 2n ** 60n } }
    if (calls.length > 2) end(new ModelNotFound({ message: "no such model" }))
    else if (!call.decoupled) Effect.runSync(respond(response, true))
    else {
      Effect.runSync(respond(response, false))
      Effect.runSync(respond({ ...response, outputs: numbers(5) }, false))
      end()
    }
    return () => {}
  },
  control: (control) => {
    controls.push(control)
    if (control._tag !== "IsReady") return Effect.succeed(true)
    return control.model === "known"
      ? Effect.succeed(false)
      : Effect.fail(new ModelNotFound({ message: `Request for unknown model: '${control.model}' is not found` }))
  },
  metrics: () => {
    let value = 0
    return {
      apply: (operation) => {
        operations.push(operation)
        if (operation.do === "increment") value += 1
        return Result.succeed(operation.do === "value" ? value : undefined)
      },
      release: () => operations.push({ do: "released" }),
    }
  },
  log: () => {},
  printed: () => {},
})

/** One instance of the model; `ask` it with texts. */
const started = Effect.gen(function* () {
  const asked: Asked = { calls: [], controls: [], operations: [] }
  const interpreter = yield* Interpreter.find(python)
  const instances = PythonInstances.make({
    model: "services",
    version: "1",
    source: {
      file: join(folder, "services.py"),
      module: undefined,
      functionName: undefined,
      versionDirectory: folder,
      modelDirectory: folder,
    },
    python: interpreter.executable,
    environment: ProcessEnvironment.make({
      from: process.env,
      inherit: [],
      interpreter: interpreter.variables,
      own: {},
    }),
    config: "{}",
    signature: { inputs: [text("TEXT")], outputs: [text("ANSWER")] },
    maxBatchSize: 4,
    decoupled: false,
    outputs: "configured",
    concurrency: 1,
    callThreads: 4,
    limits: { initializeTimeout: undefined, executeTimeout: undefined, stopTimeout: 10_000, memory: undefined },
    restart: {},
    ports: () => portsOf(asked),
  })
  const [planned] = InstancePlan.make("services", "1", 1).instances
  assert.isDefined(planned)
  const instance = yield* instances.build(planned)
  const ask = (command: string) =>
    Effect.callback<ExecutionResult, unknown>((resume) => {
      const inputs = [Tensor.make("BYTES", [1, 1], [new TextEncoder().encode(command)])]
      const request = { id: "", inputs, rows: 1, parameters: {}, deadline: undefined }
      instance.execute(Batch.make([request]), (exit: Exit.Exit<ExecutionResult, unknown>) => resume(exit))
    }).pipe(
      Effect.flatMap(({ outcomes: [outcome] }) =>
        outcome === undefined ? Effect.die("none") : Effect.fromResult(outcome),
      ),
      Effect.map(({ outputs }) => new TextDecoder().decode(outputs[0]?.bytes.subarray(4))),
    )
  return { ask, asked, isReady: instances.isReady }
})

describe.skipIf(python === undefined)("a model in Python", () => {
  it.live("calls other models, with the properties of its request", () =>
    Effect.gen(function* () {
      const { ask, asked } = yield* started
      assert.equal(yield* ask("call"), 'OUT 3.0 {"half":0.5,"big":1152921504606846976}')
      assert.equal(yield* ask("stream"), "[[1.0], [5.0], []]")
      assert.match(yield* ask("call"), /: no such model$/)
      const [call] = asked.calls
      assert.isDefined(call)
      const { inputs, ...others } = call
      assert.deepEqual(others, {
        model: "other",
        version: "2",
        id: "id",
        parameters: {
          a: 1n,
          b: "text",
          c: true,
          sequence_id: 2n ** 63n,
          sequence_start: true,
          sequence_end: true,
          timeout: 7n,
        },
        requestedOutputs: ["OUT"],
        trace: undefined,
        decoupled: false,
      })
      assert.equal(inputs[0]?.tensor.bytes.length, 400_000)
      assert.equal(inputs[0]?.tensor.bytes[4], 1)
    }),
  )

  it.live("loads and unloads models, and asks whether they are ready", () =>
    Effect.gen(function* () {
      const { ask, asked } = yield* started
      assert.equal(yield* ask("load m"), "loaded")
      assert.equal(yield* ask("unload m"), "unloaded")
      assert.equal(yield* ask("ready known"), "False")
      assert.match(yield* ask("ready absent"), /Request for unknown model: 'absent' is not found$/)
      const files = new Map([["1/model.onnx", new TextEncoder().encode("weights")]])
      const [load, ...others] = asked.controls
      assert.deepEqual(load?._tag === "Load" ? [...load.files.values()].map((bytes) => [...bytes]) : [], [
        [...(files.get("1/model.onnx") ?? [])],
      ])
      assert.deepEqual(others, [
        { _tag: "Unload", model: "m", dependents: true },
        { _tag: "IsReady", model: "known", version: "3" },
        { _tag: "IsReady", model: "absent", version: "3" },
      ])
    }),
  )

  it.live("has metrics, which are released with its process", () =>
    Effect.gen(function* () {
      const asked = yield* Effect.scoped(
        Effect.gen(function* () {
          const { ask, asked } = yield* started
          assert.equal(yield* ask("metric"), "1.0")
          assert.equal(yield* ask("metric"), "2.0")
          return asked
        }),
      )
      assert.deepEqual(
        asked.operations.map(({ do: name }) => name).filter((name) => !name.startsWith("drop")),
        ["family", "metric", "increment", "value", "increment", "value", "released"],
      )
    }),
  )

  it.live("says whether it is ready", () =>
    Effect.gen(function* () {
      const { ask, isReady } = yield* started
      assert.deepEqual(yield* isReady, { isReady: true, reason: undefined })
      yield* ask("unready")
      assert.deepEqual(yield* isReady, {
        isReady: false,
        reason: "Model 'services_0_0' is not ready (user-defined check failed).",
      })
    }),
  )
})
