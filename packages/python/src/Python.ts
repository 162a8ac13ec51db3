/**
 * `Python.layer`: runs a declared model in Python processes, from a file with Triton's class or from a plain function
 * of numpy arrays.
 */
import { readFileSync } from "node:fs"
import { basename, dirname, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Duration, Effect, type Layer, Option, type Scope } from "effect"
import type { DeclaredModel, ModelClass } from "@nereid/core/internal/call/ModelClass"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { GivenOptions } from "@nereid/core/internal/model/GivenOptions"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import * as Supervisor from "@nereid/core/internal/instance/Supervisor"
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { Definition } from "@nereid/core/internal/model/Definition"
import * as Provide from "@nereid/core/internal/provide/Provide"
import * as SequenceInstance from "@nereid/core/internal/sequence/SequenceInstance"
import * as Interpreter from "./environment/Interpreter.ts"
import * as ProcessEnvironment from "./environment/ProcessEnvironment.ts"
import * as ModelConfiguration from "./ModelConfiguration.ts"
import { CallingInstances } from "./ports/CallingInstances.ts"
import * as LocalPorts from "./ports/LocalPorts.ts"
import * as AutoComplete from "./process/AutoComplete.ts"
import * as CodeSource from "./process/CodeSource.ts"
import type { ModelPorts } from "./process/ModelPorts.ts"
import type { ProcessLimits } from "./process/ProcessOptions.ts"
import * as PythonInstances from "./process/PythonInstances.ts"
import * as PythonLoadError from "./process/PythonLoadError.ts"

export type { RestartOptions } from "@nereid/core/internal/instance/Supervisor"
export { PythonLoadError } from "./process/PythonLoadError.ts"

/** Options of a model in Python processes. `Calls`: the models that its code calls. */
export interface LayerOptions<
  I extends Fields = Fields,
  Calls extends ReadonlyArray<DeclaredModel> = readonly [],
> extends Provide.ServingOptions<I> {
  /** Path or URL of the Python file. A relative path starts at the current directory. Required without `module`. */
  readonly file?: string | URL
  /**
   * Instead of a file: a module by its dotted name, such as `package.models`, which Python imports from its environment
   * or from the current directory.
   */
  readonly module?: string
  /**
   * Name of a function of numpy arrays in the file or module. Default: it has a class TritonPythonModel, as in a
   * `model.py` of Triton.
   */
  readonly function?: string
  /**
   * Python: an executable, the folder of a virtual environment, or a folder or `.tar.gz` of conda-pack. Default:
   * NEREID_PYTHON, VIRTUAL_ENV, or `python3` of the PATH.
   */
  readonly python?: string
  /**
   * Other models that the code calls by their names, with `InferenceRequest` of `triton_python_backend_utils`. The
   * layer requires them. Default none.
   */
  readonly calls?: Calls
  /** Number of instances, or a list of groups of instances. Each is a process. Default 1. */
  readonly instances?: number | ReadonlyArray<Omit<InstancePlan.GroupOptions, "layer">>
  /** Whether all instances are threads of one process instead, which needs a free-threaded Python. Default false. */
  readonly threads?: boolean
  /** Limits on restarting a process that has died. */
  readonly restart?: Supervisor.RestartOptions
  /** Environment variables of the processes, beside those that Python and numerical libraries read. Default none. */
  readonly env?: Readonly<Record<string, string>>
  /** Names of further variables that the processes inherit; `AWS_*` stands for all with that beginning. Default none. */
  readonly inheritEnv?: ReadonlyArray<string>
  /** Whether a model.py answers a request by any number of responses. Default: as `auto_complete_config` says. */
  readonly decoupled?: boolean
  /** Batches that an `async def` executes at once in each instance. Default 1. */
  readonly concurrency?: number
  /** Texts that `initialize` finds among the `parameters` of its configuration. Default none. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Maximum time for the import of the file and `initialize`. Default: no limit. */
  readonly initializeTimeout?: Duration.Input
  /**
   * Maximum time for one execution. After it, the log receives the stacks of the Python threads, and the process is
   * ended and replaced. Default: no limit.
   */
  readonly executeTimeout?: Duration.Input
  /** Maximum time for `finalize`, before the process is killed. Default 30 seconds. */
  readonly stopTimeout?: Duration.Input
  /** Maximum memory of each process in bytes, at least 64 MiB. Default: no limit. */
  readonly maxMemoryBytes?: number
}

/** The models that a layer with these options requires. */
export type Called<Options> = Options extends { readonly calls?: infer Models }
  ? NonNullable<Models> extends ReadonlyArray<infer Called>
    ? Context.Service.Identifier<Called>
    : never
  : never

/**
 * Provides a model from Python code:
 *
 * ```py
 * # doubled.py
 * def infer(x):  # (rows, 4) float32
 *     return x * 2
 * ```
 * ```ts
 * class Doubled extends Model.Service<Doubled>()("doubled", {
 *   inputs: { x: Tensor.FP32(4) },
 *   outputs: { y: Tensor.FP32(4) },
 *   maxBatchSize: 8,
 * }) {}
 *
 * const DoubledLive = Python.layer(Doubled, { file: "doubled.py", function: "infer" })
 * ```
 *
 * The parameters of the function are the inputs by name, and its result is the output, a tuple in the order of the
 * outputs, or a dict. A generator answers each request by any number of responses. Without `function`, the file has
 * Triton's class `TritonPythonModel`. Both are checked against the declaration when the model loads.
 *
 * Each instance is a process. If it dies, only its requests fail, and another one is started. With `threads: true`, all
 * instances are threads of one process: the module and its globals exist once, and a death ends all instances.
 * @throws TypeError if an option is out of range
 */
export const layer = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  P extends Declared,
  const Given extends LayerOptions<I, ReadonlyArray<DeclaredModel>>,
>(
  model: ModelClass<Self, N, I, O, P>,
  options: GivenOptions<Given, LayerOptions<I, ReadonlyArray<DeclaredModel>>>,
): Layer.Layer<Self, PythonLoadError.PythonLoadError | Provide.Failure<Given>, Called<Given>> => {
  const { definition } = model
  const given: LayerOptions<I, ReadonlyArray<DeclaredModel>> = options
  const settings = check(definition.name, given)
  const plan = InstancePlan.make(definition.name, definition.version, given.instances ?? 1)
  let instances: PythonInstances.PythonInstances | undefined
  const load = Effect.gen(function* () {
    const callers = new CallingInstances(definition.name)
    const context = yield* Effect.context<Called<Given>>()
    const calls = (given.calls ?? []).map((key) => Context.getUnsafe(context, key).model)
    const { cycles, hasFreeInstance } = callers
    const ports = LocalPorts.make({ model: definition.name, calls, cycles, hasFreeInstance }, context)
    const prepared = yield* prepare(definition, settings, ports)
    if (prepared.decoupled && given.responseCache) return yield* cacheRefusal(settings, definition.name)
    const made = PythonInstances.make({ ...prepared, ...(given.threads === true && { inThreads: plan.instances }) })
    instances = made
    const build = (planned: InstancePlan.PlannedInstance) =>
      made.build(planned).pipe(
        Effect.tap(() =>
          made.decoupled() && given.responseCache ? cacheRefusal(settings, definition.name) : Effect.void,
        ),
        Effect.flatMap((instance) => callers.add(instance)),
      )
    return { plan, build, isConcurrent: true }
  })
  return Provide.fromInstances<Self, N, I, O, P, PythonLoadError.PythonLoadError, Called<Given> | Scope.Scope, Given>(
    model,
    {
      platform: "python",
      decoupled: () => instances?.decoupled() === true,
      // Inputs are written to a socket.
      keepsInputs: false,
      mapsShared: true,
      threaded: true,
      granularity: settings.source.functionName === undefined ? "requests" : "batch",
      isStepwise: settings.source.functionName === undefined,
      outlivesBatches: true,
      instances: load,
    },
    options,
  )
}

const cacheRefusal = ({ source }: Settings, model: string) =>
  PythonLoadError.make(
    { model, file: CodeSource.print(source), python: undefined },
    "responseCache requires a model that is not decoupled",
  )

interface Settings {
  readonly source: CodeSource.CodeSource
  readonly options: LayerOptions<Fields, ReadonlyArray<DeclaredModel>>
  readonly concurrency: number
  readonly limits: ProcessLimits
}

const minMemory = 64 * 2 ** 20

/** Calls of other models at once, by one process. */
const callThreads = 32

/**
 * Checks the options.
 * @throws TypeError if one is out of range
 */
const check = (model: string, options: Settings["options"]): Settings => {
  const wrong = (text: string) => new TypeError(`Model "${model}": ${text}.`)
  const restart = Supervisor.wrongRestart(options.restart)
  if (restart !== undefined) throw wrong(restart)
  const { file, module, function: functionName, concurrency = 1, maxMemoryBytes, decoupled } = options
  if ((file === undefined) === (module === undefined)) throw wrong("either file or module must be given")
  if (module !== undefined && !/^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u.test(module)) {
    throw wrong(`module must be a dotted name, but ${JSON.stringify(module)} was given`)
  }
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw wrong(`concurrency must be an integer of at least 1, but ${concurrency} was given`)
  }
  if (maxMemoryBytes !== undefined && !(Number.isSafeInteger(maxMemoryBytes) && maxMemoryBytes >= minMemory)) {
    throw wrong(`maxMemoryBytes must be an integer of at least ${minMemory}, but ${maxMemoryBytes} was given`)
  }
  if (functionName !== undefined && !/^[\p{L}_][\p{L}\p{N}_]*$/u.test(functionName)) {
    throw wrong(`function must be a name, but ${JSON.stringify(functionName)} was given`)
  }
  if (functionName !== undefined && decoupled !== undefined) {
    throw wrong("decoupled is for a model.py; a function is decoupled if it is a generator")
  }
  const millis = (option: "initializeTimeout" | "executeTimeout" | "stopTimeout"): number | undefined => {
    const given = options[option]
    if (given === undefined) return undefined
    const value = Option.getOrUndefined(Option.map(Duration.fromInput(given), Duration.toMillis))
    // Timers of Node count up to there.
    if (value !== undefined && value > 0 && value < 2 ** 31) return value
    throw wrong(`${option} must be a time above 0 and below 24 days, but ${String(given)} was given`)
  }
  return {
    source: file === undefined ? ofModule(module ?? "", functionName) : ofFile(pathOf(file), functionName),
    options,
    concurrency,
    limits: {
      initializeTimeout: millis("initializeTimeout"),
      executeTimeout: millis("executeTimeout"),
      stopTimeout: millis("stopTimeout") ?? 30_000,
      memory: maxMemoryBytes,
    },
  }
}

const ofFile = (file: string, functionName: string | undefined): CodeSource.CodeSource => ({
  file,
  module: undefined,
  functionName,
  versionDirectory: dirname(file),
  modelDirectory: dirname(file),
})

const ofModule = (module: string, functionName: string | undefined): CodeSource.CodeSource => {
  const folder = process.cwd()
  return { file: "", module, functionName, versionDirectory: folder, modelDirectory: folder }
}

const pathOf = (file: string | URL): string => {
  if (file instanceof URL || file.startsWith("file:")) return fileURLToPath(file)
  return resolve(file)
}

/** Whether the code may have an `auto_complete_config`. A process for nothing would import a file once more. */
const mayComplete = ({ file, functionName, module }: CodeSource.CodeSource): boolean =>
  functionName === undefined && (module !== undefined || readFileSync(file, "utf8").includes("auto_complete_config"))

/** Finds the interpreter, and compares the declaration with the configuration that a model.py completes. */
const prepare = Effect.fn("Python.prepare")(function* (
  definition: Definition<Fields, Fields>,
  { source, options, concurrency, limits }: Settings,
  ports: ModelPorts,
): Effect.fn.Return<PythonInstances.PythonModelOptions, PythonLoadError.PythonLoadError> {
  const { name, version, maxBatchSize, sequencing } = definition
  const file = CodeSource.print(source)
  const completes = yield* Effect.try({
    try: () => mayComplete(source),
    catch: (error) =>
      PythonLoadError.make(
        { model: name, file, python: undefined },
        error instanceof Error ? error.message : String(error),
      ),
  })
  const interpreter = yield* Effect.mapError(Interpreter.find(options.python), ({ executable, message }) =>
    PythonLoadError.make({ model: name, file, python: executable }, message),
  )
  const lock = options.threads === true ? Interpreter.threadsProblem(interpreter) : undefined
  if (lock !== undefined) {
    return yield* PythonLoadError.make({ model: name, file, python: interpreter.executable }, lock)
  }
  const signature =
    sequencing === undefined ? definition.signature : SequenceInstance.innerSignature(definition.signature, sequencing)
  const described: ModelConfiguration.ConfiguredModel = {
    name,
    maxBatchSize,
    signature,
    decoupled: options.decoupled === true,
    parameters: options.parameters ?? {},
    filename: basename(source.file),
  }
  const common: PythonInstances.PythonModelOptions = {
    model: name,
    version,
    source,
    python: interpreter.executable,
    environment: ProcessEnvironment.make({
      from: process.env,
      inherit: options.inheritEnv ?? [],
      interpreter: interpreter.variables,
      own: options.env ?? {},
    }),
    config: ModelConfiguration.toJson(described),
    signature,
    maxBatchSize,
    decoupled: described.decoupled,
    outputs: "declared",
    concurrency,
    callThreads,
    limits,
    restart: options.restart ?? {},
    ports: () => ports,
  }
  if (!completes) return common
  const instance = { name: `${name}_0_0`, kind: "CPU", gpu: undefined } as const
  const config = ModelConfiguration.toJson(described, false)
  const completed = yield* AutoComplete.run({
    ...common,
    name: instance.name,
    args: PythonInstances.argumentsOf({ ...common, config }, instance),
    ports,
  })
  if (completed === undefined) return common
  const different = ModelConfiguration.difference(described, completed)
  if (different !== undefined) {
    const problem = { model: name, file, python: interpreter.executable }
    return yield* PythonLoadError.make(problem, `auto_complete_config differs from the declaration: ${different}`)
  }
  const { model_transaction_policy: policy } = completed
  const isDecoupled =
    typeof policy === "object" && policy !== null && "decoupled" in policy && policy.decoupled === true
  const decoupled = options.decoupled ?? isDecoupled
  return { ...common, decoupled, config: ModelConfiguration.toJson({ ...described, decoupled }) }
})
