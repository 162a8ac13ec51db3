/** Cases of models that do not load. */
import { expect } from "vitest"
import type { PythonCase } from "../PythonCase.ts"

/** The reason of a model in the index, which contains this text. `PATH` is the repository. */
export const reason = (
  name: string,
  model: string,
  expected: string | RegExp,
  ...proves: ReadonlyArray<string>
): PythonCase => ({
  name,
  proves,
  run: async ({ client, fixture }) => {
    const entry = (await client.index()).find((one) => one.name === model)
    expect(entry?.state, entry?.reason).toBe("UNAVAILABLE")
    if (typeof expected === "string") expect(entry?.reason).toContain(expected.replaceAll("PATH", fixture.path))
    else expect(entry?.reason).toMatch(expected)
  },
})
