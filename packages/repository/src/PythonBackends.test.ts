/** Backends of the backend directory without a Python: which models they run, and which loads are refused. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { open } from "./Repository.fixture.ts"
import { repository } from "../../../test/fixtures/repository.ts"

const explicit = { control: "explicit", exitOnError: false } as const

describe("backends in Python", () => {
  it.live("a model whose backend has no file is not there, in the words of Triton", () =>
    Effect.gen(function* () {
      const [models, backends] = [yield* repository, yield* repository]
      backends.write("folder/other.py", "")
      backends.write("circle/model.py/x", "")
      for (const [name, config] of Object.entries({
        absent: 'backend: "absent"',
        other: 'backend: "folder" runtime: "model.py"',
        circle: 'backend: "circle"',
        library: 'backend: "folder" runtime: "libtriton_folder.so"',
      })) {
        models.write(`${name}/config.pbtxt`, config)
        // A file of the model is not the code of another backend.
        models.write(`${name}/1/model.py`, "")
      }
      const searched = yield* open(models, { exitOnError: false, python: { backendDirectory: backends.path } })
      const library = (name: string) =>
        `UNAVAILABLE: Invalid argument: unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`
      const missing =
        "UNAVAILABLE: Invalid argument: unable to find Python backend based backend library 'model.py' for model 'other'"
      const reasons = (index: typeof searched.index) =>
        Object.fromEntries(index().map(({ name, state, reason }) => [name, `${state}: ${reason}`]))
      const same = { absent: library("absent"), circle: library("circle"), library: library("folder") }
      expect(reasons(searched.index)).toEqual({
        ...same,
        other: `${missing}, searched: '${backends.path}/folder/model.py'`,
      })
      const { index } = yield* open(models, { exitOnError: false })
      expect(reasons(index)).toEqual({ ...same, other: `${missing}: the server has no backend directory` })
    }),
  )

  it.live("a name of a backend cannot lead out of the directory", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.write("outside/model.py", "")
      fixture.write("backends/model.py", "")
      fixture.write("models/m/1/weights.bin", "")
      fixture.write("models/m/config.pbtxt", 'backend: "absent"')
      const { load } = yield* open(
        { ...fixture, path: `${fixture.path}/models` },
        { ...explicit, python: { backendDirectory: `${fixture.path}/backends` } },
      )
      for (const backend of ["../outside", `${fixture.path}/outside`, "..", ".", "a\\b", "a/../../outside"]) {
        for (const runtime of ["", "model.py"]) {
          const { message } = yield* Effect.flip(load("m", { config: JSON.stringify({ backend, runtime }) }))
          expect(message).toContain(
            `invalid backend name '${backend}', backend name must not contain path traversal characters`,
          )
        }
      }
    }),
  )

  it.live("files of a request are not loaded, whichever backend runs them", () =>
    Effect.gen(function* () {
      const [models, backends] = [yield* repository, yield* repository]
      backends.write("shared/model.py", "")
      const { load } = yield* open(models, { ...explicit, python: { backendDirectory: backends.path } })
      const files = new Map([["1/model.py", new TextEncoder().encode("import os")]])
      for (const config of [
        '{"backend":"shared"}',
        '{"backend":"shared","runtime":"model.py"}',
        '{"backend":"python"}',
      ]) {
        const { message } = yield* Effect.flip(load("m", { config, files }))
        expect(message).toContain("a script cannot be loaded from the files of a request")
      }
      const { message } = yield* Effect.flip(load("m", { config: '{"backend":"absent","runtime":"model.py"}', files }))
      expect(message).toContain("a script cannot be loaded from the files of a request")
    }),
  )
})
