/**
 * The program of a guide: writes its TypeScript blocks to temporary files. A block that begins with a comment like `//
 * name.ts` starts the file of that name; later blocks continue it.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { root } from "./Program.ts"

export class Guide implements Disposable {
  /** Below the repository, so that the packages resolve. */
  readonly folder = mkdtempSync(join(root, "test", ".guide-"))

  constructor(path: string) {
    const blocks = [...readFileSync(join(root, path), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)]
    const files = new Map<string, string>()
    let file = "guide.ts"
    for (const [, block = ""] of blocks) {
      file = /^\/\/ (\S+\.ts)\n/.exec(block)?.[1] ?? file
      files.set(file, `${files.get(file) ?? ""}${block}`)
    }
    for (const [name, text] of files) {
      mkdirSync(dirname(this.file(name)), { recursive: true })
      writeFileSync(this.file(name), text)
    }
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true })
  }
}
