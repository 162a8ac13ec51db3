/**
 * Runs `auto_complete_config` of a model.py in a process that ends with it. The file is therefore imported twice, as by
 * Triton.
 */
import { Deferred, Effect } from "effect"
import type { PythonLoadError } from "./PythonLoadError.ts"
import type { Header } from "../wire/Header.ts"
import { ControlCalls } from "./ControlCalls.ts"
import type { ProcessOptions } from "./ProcessOptions.ts"
import * as ProcessStart from "./ProcessStart.ts"
import type { SpawnedProcess } from "./SpawnedProcess.ts"

/** The completed configuration; undefined for a model without that function. */
export const run = (options: Omit<ProcessOptions, "threads">): Effect.Effect<Header | undefined, PythonLoadError> =>
  Effect.gen(function* () {
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    let process: SpawnedProcess | undefined
    const calls = new ControlCalls({
      ports: options.ports,
      maxCalls: 0,
      run: fork,
      send: (kind, header, body) => process?.sendControl(kind, header, body),
    })
    const starting = ProcessStart.start({
      ...options,
      threads: [],
      isAutoComplete: true,
      onControl: (frame) => calls.receive(frame),
      onSpawned: (spawned) => (process = spawned),
    })
    const { spawned, config, listen } = yield* Effect.ensuring(
      starting,
      Effect.sync(() => calls.close()),
    )
    const exited = Deferred.makeUnsafe<void>()
    listen({
      onControl: () => {},
      onData: () => {},
      onBroken: () => {},
      onExit: () => Deferred.doneUnsafe(exited, Effect.void),
    })
    spawned.kill("its configuration is complete")
    yield* Deferred.await(exited)
    return config
  }).pipe(Effect.uninterruptible)
