/**
 * Rewrites imports of Effect's index in emitted code to imports of its modules:
 *
 *   import { Effect, identity } from "effect"  →  import * as Effect from "effect/Effect"
 *                                                 import { identity } from "effect/Function"
 *
 * esbuild keeps every name of a namespace that an index exports, and Node loads all modules of the index. Declarations
 * keep their imports, because both forms have the same types.
 */

const statement = /^import \{([^}]*)\} from "effect";?$/gm

/** @throws Error if an import or a re-export of the index is left */
export const rewrite = (code: string, file: string): string => {
  const rewritten = code.replaceAll(statement, (_, names: string) =>
    names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map(importOf)
      // On one line, because stack traces count lines.
      .join(" "),
  )
  const [rest] =
    /^(?:import|export|\}).*\bfrom ["']effect["'].*$/m.exec(rewritten.replaceAll(/\/\*[^]*?\*\//g, "")) ?? []
  if (rest !== undefined) throw new Error(`${file}: expected import { … } from "effect", found ${rest.trim()}`)
  return rewritten
}

/** `specifier`: one name of an import, such as `Effect` or `Scheduler as EffectScheduler`. */
const importOf = (specifier: string): string => {
  const [name = "", local = name] = specifier.split(/\s+as\s+/)
  // The index exports its modules as namespaces, and the functions of one module by their names.
  if (/^[a-z]/.test(name)) return `import { ${specifier} } from "effect/Function";`
  return `import * as ${local} from "effect/${name}";`
}
