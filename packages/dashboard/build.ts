/**
 * Builds the page into `built`, unless it is that of the sources already: node packages/dashboard/build.ts [--force]
 */
import { createHash } from "node:crypto"
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"

const root = import.meta.dirname
const stamp = join(root, ".built.json")

const sources = globSync(["page/**/*", "vite.config.ts", "../../package-lock.json"], { cwd: root, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
  .map((entry) => join(entry.parentPath, entry.name))
  .toSorted()
const hash = createHash("sha256")
for (const file of sources) hash.update(readFileSync(file))
const wanted = JSON.stringify({ sources: hash.digest("hex") })

const current = (): string | undefined => {
  try {
    return readFileSync(stamp, "utf8")
  } catch {
    return undefined
  }
}

if (process.argv.includes("--force") || current() !== wanted || !existsSync(join(root, "built/index.html"))) {
  const { build } = await import("vite")
  await build({ configFile: join(root, "vite.config.ts"), logLevel: "warn" })
  // Servers start without compressing anything.
  for (const file of globSync("built/**/*.{html,js,css,svg,txt}", { cwd: root })) {
    writeFileSync(join(root, `${file}.gz`), gzipSync(readFileSync(join(root, file)), { level: 9 }))
  }
  writeFileSync(stamp, wanted)
}
