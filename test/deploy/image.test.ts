/**
 * The image of deploy/Containerfile, made and run without an engine: its instructions fill a folder, which becomes the
 * read-only root of a process. The images that it starts from are those of BaseImages.ts. Needs `npm run build`.
 */
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root as repository } from "../Program.ts"
import * as BaseImages from "./BaseImages.ts"
import * as Image from "./Image.ts"
import { deploy, output } from "./Tools.ts"

const guide = readFileSync(join(repository, "docs/guides/kubernetes.md"), "utf8")
const containerfile = readFileSync(join(deploy, "Containerfile"), "utf8")
const dist = join(repository, "dist")

const folder = mkdtempSync(join(tmpdir(), "nereid-image-"))
const reason =
  BaseImages.missing(join(folder, "probe")) ??
  (globSync("*.tgz", { cwd: dist }).length === 0 ? "dist has no packages; npm run build makes them" : undefined)
if (reason !== undefined) console.log(`Skipped, ${reason}: the image`)

afterAll(() => rmSync(folder, { recursive: true, force: true }), 120_000)

const inside = (program: Image.Container, ...args: ReadonlyArray<string>) =>
  output("nsenter", ["--net", `--target=${program.pid}`, ...args])

/** Fields of /proc/PID/status. */
const statusOf = ({ pid }: Image.Container) =>
  new Map(
    readFileSync(`/proc/${pid}/status`, "utf8")
      .split("\n")
      .map((line) => line.split(":\t"))
      .map(([name = "", value = ""]) => [name, value]),
  )

/** Whether the path of a process is mounted read-only. */
const isReadOnly = ({ pid }: Image.Container, path: string) =>
  readFileSync(`/proc/${pid}/mountinfo`, "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .some((fields) => fields[4] === path && fields[5]?.split(",").includes("ro"))

/** Packages below a folder node_modules, as NAME@VERSION. */
const installed = (root: string) => {
  const files = globSync(["**/node_modules/*/package.json", "**/node_modules/@*/*/package.json"], { cwd: root })
  return files.map((file) => {
    const { name, version } = JSON.parse(readFileSync(join(root, file), "utf8"))
    return `${name}@${version}`
  })
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? NaN

describe.skipIf(reason !== undefined)("the image", () => {
  let images: Image.Images
  const get = (name: string) => {
    const image = images.get(name)
    if (image === undefined) throw new Error(`The Containerfile has no stage ${name}`)
    return image
  }

  beforeAll(() => {
    images = Image.build(containerfile, dist, folder)
  }, 480_000)

  it("serves a repository as user 1000 on a read-only root, over HTTP and gRPC", { timeout: 120_000 }, async () => {
    const image = get("server")
    expect(image.ports).toEqual([8000, 8001, 8002])
    const models = join(folder, "models")
    mkdirSync(join(models, "digits/1"), { recursive: true })
    copyFileSync(join(repository, "examples/digits/digits.onnx"), join(models, "digits/1/model.onnx"))
    const started = /Started Metrics Service at 0\.0\.0\.0:8002/
    const times: Array<number> = []
    for (let start = 0; start < 5; start++) {
      const began = performance.now()
      await using program = Image.start(image, { models })
      await program.match(started)
      times.push(performance.now() - began)
    }
    const shown = times.map((time) => time.toFixed(0)).join(", ")
    console.log(`The entry point is ready with one model after ${median(times).toFixed(0)} ms (${shown})`)
    await using program = Image.start(image, { models })
    await program.match(started)

    const client = inside(program, process.execPath, join(import.meta.dirname, "imageClient.ts"))
    const [http = [], grpc = []]: ReadonlyArray<ReadonlyArray<number>> = JSON.parse(client)
    expect(http.indexOf(Math.max(...http))).toBe(1)
    expect(grpc).toEqual(http)

    const status = statusOf(program)
    expect(status.get("Uid")).toBe("1000\t1000\t1000\t1000")
    expect(status.get("Gid")).toBe("1000\t1000\t1000\t1000")
    expect(status.get("Groups")?.trim()).toBe("")
    expect(status.get("CapEff")).toBe("0000000000000000")
    expect(status.get("NoNewPrivs")).toBe("1")
    // The first process of a container: signals without a handler do not reach it.
    expect(status.get("NSpid")).toMatch(/\t1$/)
    expect(isReadOnly(program, "/")).toBe(true)
    expect(isReadOnly(program, "/models")).toBe(true)
    expect(isReadOnly(program, "/tmp")).toBe(false)

    program.signal("SIGTERM")
    expect(await program.ended).toMatchObject({ code: 0, signal: null })
  })

  it("has the compiled modules of its command, for its user", { timeout: 120_000 }, async () => {
    const { variables, ...image } = get("server")
    const debug = { ...variables, NODE_DEBUG_NATIVE: "COMPILE_CACHE" }
    await using program = Image.start({ ...image, variables: debug }, { models: join(folder, "models") })
    await program.match(/Started Metrics Service/)
    program.signal("SIGTERM")
    const { output: log } = await program.ended
    expect(log).toMatch(/code cache for ESM \S*\/bundle\/nereid-imports-\S+ was accepted/)
  })

  it("has Node and no other program: no shell, no package manager, no build tools", () => {
    const { root } = get("server")
    const programs = globSync("{bin,sbin,usr/bin,usr/sbin,usr/local/bin,usr/local/sbin}/*", { cwd: root })
    expect(programs).toEqual(["usr/local/bin/node"])
    const tools = "{sh,bash,dash,busybox,npm,npx,corepack,apt,apt-get,dpkg,gcc,cc,g++,make,python3,perl,node-gyp}"
    const found = globSync(`**/${tools}`, { cwd: root, withFileTypes: true })
    expect(found.filter((entry) => !entry.isDirectory()).map(({ name }) => name)).toEqual([])
    expect(() => output("chroot", [root, "/bin/sh", "-c", "true"])).toThrow("No such file or directory")
  })

  it("is as large as the guide says at most", () => {
    const { root } = get("server")
    const megabytes = (path: string) => Number(/^\d+/.exec(output("du", ["-sb", join(root, path)]))) / 1e6
    const size = megabytes("")
    const [, limit] = /at most (\d+) MB/.exec(guide) ?? []
    const parts = ["usr/local/bin/node", "opt/nereid/node_modules/onnxruntime-node", "opt/nereid/node_modules"]
    const sizes = parts.map((part) => `${basename(part)} ${megabytes(part).toFixed(0)}`)
    console.log(`The image has ${size.toFixed(0)} MB: ${sizes.join(", ")}`)
    expect(size).toBeLessThan(Number(limit))
  })

  it("has ONNX Runtime for its own system and processor only", () => {
    const bin = join(get("server").root, "opt/nereid/node_modules/onnxruntime-node/bin")
    expect(globSync("*/*/*", { cwd: bin })).toEqual([expect.stringMatching(`/linux/${process.arch}$`)])
  })

  describe("its SBOM in CycloneDX", () => {
    interface Component {
      readonly name: string
      readonly version: string
      readonly purl: string
      readonly "bom-ref": string
    }
    const components = (type: string): ReadonlyArray<Component> => {
      const document = JSON.parse(readFileSync(join(get("server").root, "opt/nereid/sbom.cdx.json"), "utf8"))
      expect(document).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.5" })
      const all: ReadonlyArray<Component> = document.components
      expect(new Set(all.map((component) => component["bom-ref"])).size).toBe(all.length)
      return all.filter(({ purl }) => purl.startsWith(`pkg:${type}/`))
    }
    const nameOf = ({ name, version }: Component) => `${name}@${version}`

    it("has its packages of npm", () => {
      const listed = components("npm")
      const names = listed.map(nameOf)
      expect(new Set(names)).toEqual(new Set(installed(join(get("server").root, "opt/nereid"))))
      const { version } = JSON.parse(readFileSync(join(repository, "packages/cli/package.json"), "utf8"))
      expect(names).toContain(`@nereid/cli@${version}`)
      for (const { purl } of listed) expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/)
    })

    it("has its packages of Debian, and Node", () => {
      // Names and versions of the archives that the base was made from: NAME_VERSION_ARCHITECTURE.deb.
      const archives = globSync("*.deb", { cwd: join(folder, "system") }).map((file) => file.split("_"))
      const base = archives.map(([name, version = ""]) => `${name}@${decodeURIComponent(version)}`)
      expect(base.length).toBe(BaseImages.distroless.length)
      const listed = components("deb")
      const [atomic, ...others] = listed.map(nameOf).toSorted((one) => (one.startsWith("libatomic1@") ? -1 : 1))
      expect(atomic).toMatch(/^libatomic1@12\./)
      expect(others.toSorted()).toEqual(base.toSorted())
      for (const { purl } of listed) {
        expect(purl).toMatch(
          /^pkg:deb\/debian\/[a-z0-9.+-]+@[\w.~%-]+\?arch=(all|amd64|arm64)&distro=debian-12&upstream=\S+$/,
        )
      }
      expect(components("generic").map(nameOf)).toEqual([`node@${process.versions.node}`])
    })

    it("lists no file of a system that it does not name", () => {
      const { root } = get("server")
      // The start of an image makes places for devices.
      const own = ["opt/nereid/", "usr/local/bin/node", "var/lib/dpkg/", "dev/"]
      const files = globSync("**", { cwd: root, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
        .filter((file) => !own.some((place) => file.startsWith(place)))
      const archives = globSync("*.deb", { cwd: join(folder, "system") }).map((file) => join(folder, "system", file))
      const packaged = archives.flatMap((file) =>
        output("sh", ["-euc", `dpkg-deb --fsys-tarfile '${file}' | tar -t`]).split("\n"),
      )
      const known = new Set(packaged.map((path) => path.replace(/^\.\//, "")))
      expect(files.filter((file) => !known.has(file))).toEqual(["usr/lib/libatomic.so.1"])
    })
  })

  it.each([
    ["FROM scratch\n", "No way to make the image scratch here"],
    ["FROM small\nADD x /y\n", "ADD x /y: not known here"],
    ["FROM small\nCOPY --from=large /x /y\n", "COPY from large to /y: not known here"],
    ["FROM small\nCOPY --chown=1 /x /y\n", "not known here"],
    ["FROM small\nCOPY x /y\n", "cannot stat"],
    ["FROM small\nENV A=$B\n", "ENV A=$B: not known here"],
    ["FROM small\nCMD serve\n", "Unexpected token"],
    ["FROM small\nRUN true\n", "No such file or directory"],
  ])("would not be made from what the test does not follow: %j", (text, error) => {
    const root = mkdtempSync(join(folder, "small-"))
    mkdirSync(join(root, "etc"))
    const small = { ...get("base"), root }
    const place = mkdtempSync(join(folder, "wrong-"))
    expect(() => Image.build(text, root, place, new Map([["small", small]]))).toThrow(error)
  })

  it("is a base for a module, by the Containerfile of the guide", { timeout: 120_000 }, async () => {
    const [, own = ""] = /^```dockerfile\n([^]*?)^```/m.exec(guide) ?? []
    const context = join(folder, "context")
    mkdirSync(context)
    writeFileSync(join(context, "models.ts"), userModule)
    const base = get("base")
    const stages = Image.build(own, context, join(folder, "own"), new Map([["nereid-base", base]]))
    const image = stages.get("0")
    if (image === undefined) throw new Error("no image")
    await using program = Image.start(image, {})
    await program.match(/Started Metrics Service/)
    const body = JSON.stringify({ inputs: [{ name: "X", shape: [1, 1], datatype: "FP32", data: [21] }] })
    const request = `const response = await fetch("http://127.0.0.1:8000/v2/models/twice/infer", { method: "POST", body: '${body}' });
      console.log(await response.text())`
    const answer = JSON.parse(inside(program, process.execPath, "--input-type=module", "--eval", request))
    expect(answer.outputs).toMatchObject([{ name: "Y", data: [42] }])
    expect(statusOf(program).get("Uid")).toMatch(/^1000\t/)
  })
})

const userModule = `import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"

export class Twice extends Model.Service<Twice>()("twice", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
  maxBatchSize: 8,
}) {}

export const TwiceLive = Model.batch(Twice, ({ X }) =>
  Effect.succeed({ Y: Tensor.make("FP32", X.shape, X.data.map((value) => value * 2)) }),
)
`
