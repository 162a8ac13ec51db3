/**
 * The pages of the API reference, which TypeDoc writes from the docstrings of the public modules: those that a
 * package.json exports outside `./internal/`. TypeDoc cannot read TypeScript 7, so this folder has an older one of its
 * own. Generated messages are not here: the page of @nereid/protocol shows their .proto files.
 */
import { execFileSync } from "node:child_process"
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { read, root } from "./SitePages.ts"
import * as Docstrings from "./Docstrings.ts"

/** A public module, such as `@nereid/core/Model`. */
export interface PublicModule {
  readonly name: string
  /** Path from the root of the repository. */
  readonly source: string
}

export interface ReferencePage {
  /** Name of the package's folder. */
  readonly package: string
  /** Name within the package, such as `Model`; empty for what the package itself exports. */
  readonly name: string
  readonly page: string
}

const generated: ReadonlyArray<string> = ["protocol"]

export const publicModules = (): ReadonlyArray<PublicModule> =>
  readdirSync(join(root, "packages"))
    .filter((folder) => !generated.includes(folder))
    .flatMap((folder) => {
      const manifest: { name: string; exports?: Record<string, string> } = JSON.parse(
        read(`packages/${folder}/package.json`),
      )
      const { name, exports = {} } = manifest
      return Object.entries(exports)
        .filter(([path]) => !path.startsWith("./internal/"))
        .map(([path, file]) => ({
          name: `${name}${path.slice(1)}`,
          source: `packages/${folder}/${file.slice(2)}`,
        }))
    })

/**
 * Writes the pages to `folder/reference`, and TypeDoc's model of the API to `work`.
 *
 * @throws Error that names the exports without a docstring
 */
export const write = (folder: string, work: string): ReadonlyArray<ReferencePage> => {
  mkdirSync(work, { recursive: true })
  const modules = publicModules()
  const document = join(work, "api.json")
  typedoc(join(work, "read.json"), {
    entryPoints: modules.map(({ source }) => join(root, source)),
    tsconfig: join(import.meta.dirname, "tsconfig.json"),
    basePath: root,
    excludeExternals: true,
    excludePrivate: true,
    excludeInternal: true,
    // TypeDoc's own list has more; @generated is on messages that public modules return.
    blockTags: ["@param", "@returns", "@throws", "@template", "@typeParam", "@see", "@deprecated", "@generated"],
    groupOrder: ["Functions", "Variables", "Classes", "Interfaces", "Type Aliases", "*"],
    json: document,
    pretty: false,
    validation: { invalidLink: true, notExported: false, notDocumented: false },
    treatWarningsAsErrors: true,
  })
  const api = Docstrings.named(JSON.parse(readFileSync(document, "utf8")), modules)
  const missing = Docstrings.missing(api)
  if (missing.length > 0) throw new Error(`Exports without a docstring:\n  ${missing.join("\n  ")}`)
  writeFileSync(document, JSON.stringify(api))
  typedoc(join(work, "write.json"), {
    plugin: ["typedoc-plugin-markdown"],
    entryPointStrategy: "merge",
    entryPoints: [document],
    out: join(folder, "reference"),
    name: "API reference",
    outputFileStrategy: "modules",
    entryFileName: "index.md",
    hideBreadcrumbs: true,
    hidePageHeader: true,
    disableSources: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    useCodeBlocks: true,
    sanitizeComments: true,
    treatWarningsAsErrors: true,
  })
  return pages(folder)
}

const pages = (folder: string): ReadonlyArray<ReferencePage> =>
  globSync("reference/@nereid/**/*.md", { cwd: folder })
    .map((path) => path.replaceAll("\\", "/"))
    .toSorted()
    .map((page) => {
      const [, name = "", path = ""] = /^reference\/@nereid\/([a-z]+)(.*)\.md$/.exec(page) ?? []
      return { package: name, name: path.replaceAll(/\/namespaces(?=\/)|\/index$|^\//g, "").replace(/^\//, ""), page }
    })

const typedoc = (file: string, options: object): void => {
  writeFileSync(file, JSON.stringify({ ...options, readme: "none", logLevel: "Warn" }))
  const command = join(import.meta.dirname, "node_modules/typedoc/bin/typedoc")
  execFileSync(process.execPath, [command, "--options", file], { cwd: import.meta.dirname, stdio: "inherit" })
}
