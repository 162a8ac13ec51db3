/**
 * `node .ci/structure.ts [folder]`: prints figures about the structure of a checkout as Markdown, one column for each
 * package. Default: this checkout. Any folder of JavaScript modules works too, for comparison with other libraries.
 */
import { join, resolve } from "node:path"
import * as Project from "./structure/Project.ts"
import * as Report from "./structure/Report.ts"

const root = resolve(process.argv[2] ?? join(import.meta.dirname, ".."))
console.log(Report.markdown(Project.all(root)))
