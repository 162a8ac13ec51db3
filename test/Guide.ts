/**
 * The program of a guide: writes its TypeScript blocks to temporary files. A block that begins with a comment like `//
 * name.ts` starts the file of that name; later blocks continue it. A block of any other language becomes a file only if
 * it begins with a path, as in `# models/a/config.pbtxt`.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { root } from "./Program.ts"

export class Guide implements Disposable {
  /** Below the repository, so that the packages resolve. */
  readonly folder = mkdtempSync(join(root, "test", ".guide-"))

  constructor(path: string) {
    const text = readFileSync(join(root, path), "utf8")
    const blocks = [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)]
    const files = new Map<string, string>()
    let file = "guide.ts"
    for (const [, block = ""] of blocks) {
      file = /^\/\/ (\S+\.ts)\n/.exec(block)?.[1] ?? file
      files.set(file, `${files.get(file) ?? ""}${block}`)
    }
    for (const [, language = "", name = "", block = ""] of text.matchAll(/^```(\w+)\n# (\S+\.\w+)\n([\s\S]*?)^```/gm)) {
      if (language !== "ts") files.set(name, block)
    }
    for (const [name, text] of files) {
      mkdirSync(dirname(this.file(name)), { recursive: true })
      writeFileSync(this.file(name), text)
    }
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  /** @throws Error if a file of the guide does not compile */
  compile(): void {
    const configuration = this.file("tsconfig.json")
    writeFileSync(configuration, JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["**/*.ts"] }))
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", configuration], { stdio: "inherit" })
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true })
  }
}
