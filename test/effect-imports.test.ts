/** The rewriting of Effect's imports in published code. */
import { expect, it } from "vitest"
import * as EffectImports from "../.ci/EffectImports.ts"

it.each([
  ['import { Effect } from "effect";', 'import * as Effect from "effect/Effect";'],
  [
    'import { Scheduler as EffectScheduler, identity } from "effect"',
    'import * as EffectScheduler from "effect/Scheduler"; import { identity } from "effect/Function";',
  ],
  [
    'import {\n  Effect,\n  Layer,\n} from "effect";',
    'import * as Effect from "effect/Effect"; import * as Layer from "effect/Layer";',
  ],
  ['import { constVoid } from "effect/Function";', 'import { constVoid } from "effect/Function";'],
  ['  `import { Effect } from "effect"`', '  `import { Effect } from "effect"`'],
  ['/**\n * import { Effect } from "effect"\n */', '/**\n * import { Effect } from "effect"\n */'],
])("%j becomes %j", (code, expected) => {
  expect(EffectImports.rewrite(code, "a.js")).toBe(expected)
})

it.each(['export { Effect } from "effect";', 'import * as effect from "effect";', "import { Effect } from 'effect';"])(
  "%s is refused",
  (code) => {
    expect(() => EffectImports.rewrite(code, "a.js")).toThrow(
      `a.js: expected import { … } from "effect", found ${code}`,
    )
  },
)
