/** Revisions of models: what changes them, and what does not. */
import { expect, it } from "@effect/vitest"
import { create } from "@bufbuild/protobuf"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { Effect } from "effect"
import { join } from "node:path"
import { repository } from "../../../../test/fixtures/repository.ts"
import * as Revision from "./Revision.ts"

it.live("equal files have one revision in every directory; other files, names and configurations have another", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    for (const model of ["a", "b"]) {
      fixture.write(`${model}/1/model.js`, "code")
      fixture.write(`${model}/1/more/data.txt`, "data")
      fixture.write(`${model}/shared.js`, "shared")
    }
    const config = create(ModelConfigSchema, { name: "m" })
    const of = (model: string, version = 1, more = config) => Revision.make(join(fixture.path, model), version, more)
    const first = yield* of("a")
    expect(first).toMatch(/^[\w-]{43}$/)
    expect(yield* of("b")).toBe(first)
    fixture.write("b/2/model.js", "another version")
    fixture.write("b/.hidden", "x")
    fixture.write("b/1/__pycache__/model.pyc", "x")
    expect(yield* of("b")).toBe(first)
    expect(yield* of("a", 1, create(ModelConfigSchema, { name: "m", maxBatchSize: 2 }))).not.toBe(first)
    for (const file of ["1/model.js", "1/more/data.txt", "shared.js", "1/new.js"]) {
      const before = yield* of("b")
      fixture.write(`b/${file}`, "changed")
      expect(yield* of("b"), file).not.toBe(before)
    }
    expect(yield* of("none")).toBeUndefined()
  }),
)
