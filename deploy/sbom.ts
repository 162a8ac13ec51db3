/**
 * Completes the SBOM of npm with the rest of the image: Node, and the packages of Debian. The Containerfile runs it:
 * `node sbom.ts FILE FOLDER`, with the SBOM of npm and a folder of Debian control files, and prints the whole SBOM.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

interface Component {
  readonly "bom-ref": string
  readonly type: "application" | "library"
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly cpe?: string
}

/** The value of a field in a control file. */
const field = (text: string, name: string): string | undefined =>
  new RegExp(`^${name}: (\\S+)`, "m").exec(text)?.[1]

const component = (purl: string, fields: Omit<Component, "purl" | "bom-ref">): Component => ({
  "bom-ref": purl,
  ...fields,
  purl,
})

/** Undefined for a file that describes no package, such as a list of checksums. */
const debian = (text: string, distribution: string): Component | undefined => {
  const name = field(text, "Package")
  const version = field(text, "Version")
  if (name === undefined || version === undefined) return undefined
  // Advisories of Debian name source packages.
  const source = field(text, "Source") ?? name
  const query = `arch=${field(text, "Architecture")}&distro=${distribution}&upstream=${source}`
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?${query}`
  return component(purl, { type: "library", name, version })
}

const node = (version: string): Component =>
  component(`pkg:generic/node@${version}`, {
    type: "application",
    name: "node",
    version,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
  })

const [, , file = "", folder = ""] = process.argv
const document = JSON.parse(readFileSync(file, "utf8"))
const [, release = ""] = /^VERSION_ID="?(\d+)/m.exec(readFileSync("/etc/os-release", "utf8")) ?? []
const packages = readdirSync(folder)
  .map((name) => debian(readFileSync(join(folder, name), "utf8"), `debian-${release}`))
  .filter((found) => found !== undefined)
if (packages.length === 0) throw new Error(`${folder} describes no package of Debian`)
const components = [...document.components, node(process.versions.node), ...packages]
console.log(JSON.stringify({ ...document, components }, null, 2))
