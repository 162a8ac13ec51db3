/**
 * The TypeScript blocks of a guide whose blocks are not programs. Each becomes a module, which imports the names that
 * the guide takes for granted: those of the packages, and those of a prelude.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./Program.ts"

const prelude = "fixtures/GuidePrelude.ts"

const imports: ReadonlyArray<readonly [module: string, names: ReadonlyArray<string>]> = [
  ["@nereid/core", ["Errors", "Logits", "Model", "Registry", "RequestContext", "Tensor"]],
  ["@nereid/client", ["Client"]],
  ["@nereid/onnx", ["Onnx"]],
  ["@nereid/server", ["Logging", "Server"]],
  ["effect", ["Console", "Effect", "Layer", "Result", "Schema", "Stream"]],
  [
    `../${prelude}`,
    [...readFileSync(join(root, "test", prelude), "utf8").matchAll(/^export (?:declare )?(?:class|const) (\w+)/gm)].map(
      ([, name = ""]) => name,
    ),
  ],
]

export class Snippets implements Disposable {
  /** Below the repository, so that the packages resolve. */
  readonly folder = mkdtempSync(join(root, "test", ".guide-"))

  constructor(documents: ReadonlyArray<string>) {
    for (const document of documents) {
      const name = document.replaceAll(/[/.]/g, "-")
      const blocks = [...readFileSync(join(root, document), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)]
      for (const [index, [, block = ""]] of blocks.entries()) {
        writeFileSync(join(this.folder, `${name}-${index + 1}.ts`), module(block))
      }
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true })
  }
}

const module = (block: string): string => {
  // A block that begins with a property is a part of an object.
  const code = /^\w+: \{/.test(block) ? `export const properties = {\n${block}}\n` : block
  const headers = imports.flatMap(([module, names]) => {
    const used = names.filter((name) => uses(code, name) && !declares(code, name))
    return used.length === 0 ? [] : [`import { ${used.join(", ")} } from "${module}"\n`]
  })
  return `${headers.join("")}${code}export {}\n`
}

const uses = (code: string, name: string): boolean =>
  new RegExp(`(?<![\\w.'"/-])${name}\\b(?!['"-])`).test(code.replaceAll(/\/\/.*/g, ""))

const declares = (code: string, name: string): boolean =>
  new RegExp(`\\b(?:class|const|let|using|function|import) (?:\\* as )?(?:[{[][^}\\]=]*\\b)?${name}\\b`).test(code)
