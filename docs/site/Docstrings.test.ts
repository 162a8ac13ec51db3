import { expect, it } from "vitest"
import { missing, named, type Api, type Reflection } from "./Docstrings.ts"

const comment = (text: string) => ({ summary: [{ kind: "text", text }] })

let ids = 0
const reflection = (kind: number, name: string, more: Partial<Reflection> = {}): Reflection => ({
  id: (ids += 1),
  kind,
  name,
  ...more,
})

const api = (...children: ReadonlyArray<Reflection>): Api => ({
  ...reflection(1, "nereid", { children }),
  symbolIdMap: Object.fromEntries(
    children.map(({ id }) => [id, { packageName: "@nereid/core", packagePath: "src/tensor/Logits.ts" }]),
  ),
})

it("modules have the names that users import, and the headers of their files", () => {
  const modules = [{ name: "@nereid/core/Logits", source: "packages/core/src/tensor/Logits.ts" }]
  const [module] = named(api(reflection(2, "packages/core/src/tensor/Logits")), modules).children ?? []
  expect(module?.name).toBe("@nereid/core/Logits")
  expect(module?.comment?.summary[0]?.text).toMatch(/^Converts a classifier's outputs to probabilities/)
})

it("an export without a docstring is missing, and so is one whose only text is the header of its module", () => {
  const documented = reflection(64, "argmax", {
    signatures: [reflection(4096, "argmax", { comment: comment("Largest.") })],
  })
  const module = reflection(2, "@nereid/core/Logits", {
    comment: comment("Numbers."),
    children: [
      reflection(2_097_152, "Numbers", { comment: comment("Numbers.") }),
      documented,
      reflection(64, "topK", { signatures: [reflection(4096, "topK")] }),
      reflection(4, "Inner", {
        comment: comment("Inner."),
        children: [reflection(32, "value", { comment: comment(" ") })],
      }),
      // Neither members nor other names of exports need one.
      reflection(256, "Ranked", { comment: comment("Ranked."), children: [reflection(1024, "index")] }),
      reflection(4_194_304, "Alias"),
    ],
  })
  expect(missing(api(module))).toEqual([
    "@nereid/core/Logits Numbers",
    "@nereid/core/Logits topK",
    "@nereid/core/Logits Inner value",
  ])
})
