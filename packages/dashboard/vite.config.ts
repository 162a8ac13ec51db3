import { join } from "node:path"
import { defineConfig } from "vite"

export default defineConfig({
  root: join(import.meta.dirname, "page"),
  // The page works below any path.
  base: "./",
  build: {
    outDir: join(import.meta.dirname, "built"),
    emptyOutDir: true,
    target: "es2022",
    // Each import of a view would otherwise be preceded by a script that Vite adds.
    modulePreload: false,
    // A data: URL in a style would need a wider policy.
    assetsInlineLimit: 0,
    license: { fileName: "licences.txt" },
  },
})
