/** The npm page of each package: its package.json and its README, whose program is run unchanged. */
import { execFileSync } from "node:child_process"
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Server } from "@nereid/server"
import sharp from "sharp"
import { afterAll, describe, expect, it, onTestFinished } from "vitest"
import * as StagedPackage from "../../.ci/StagedPackage.ts"
import { Guide } from "../Guide.ts"
import { python } from "../fixtures/python.ts"
import { packageOf, packages } from "../Imports.ts"
import { freePort, hasCurl, nereid, Program, root, shell } from "../Program.ts"

const read = (path: string) => readFileSync(join(root, path), "utf8")

const rootPackage = JSON.parse(read("package.json"))
const repository = StagedPackage.repositoryAddress(rootPackage)

const names = packages.map(({ name }) => name)

/** Packages that are run without an install, with nothing to import, and the command. */
const commands: Readonly<Record<string, string>> = { "create-nereid": "npm create nereid" }

describe.each(names)("%s", (name) => {
  const manifest = JSON.parse(read(`packages/${name}/package.json`))
  const readme = read(`packages/${name}/README.md`)

  it("has the fields that npm shows", () => {
    expect(manifest).toMatchObject({
      name: name in commands ? name : `@nereid/${name}`,
      description: expect.stringMatching(/^.{20,120}[^.]$/),
      license: rootPackage.license,
      engines: { node: ">=22.19" },
      publishConfig: { access: "public", provenance: true },
    })
    expect(manifest.keywords).toContain("nereid")
    expect(new Set(manifest.keywords).size).toBe(manifest.keywords.length)
    expect(read("README.md")).toContain("need Node 22.19 or newer")
    // The build takes these from the root.
    for (const field of ["repository", "homepage", "bugs"]) expect(manifest).not.toHaveProperty(field)
  })

  it("publishes each module of its exports, those for sibling packages as one pattern", () => {
    const { exports: published = {} }: { readonly exports?: Readonly<Record<string, unknown>> } =
      StagedPackage.packageJson(manifest, name, repository)
    const patterns = Object.keys(published).filter((path) => path.endsWith("*"))
    const fileOf = (path: string): unknown => {
      const found = published[path] ?? published[patterns[0] ?? ""]
      const internal = path.replace("./internal/", "")
      return typeof found === "string" ? found.replace("*", internal) : Reflect.get(Object(found), "default")
    }
    for (const [path, file] of Object.entries<string>(manifest.exports ?? {})) {
      expect(fileOf(path), path).toBe(StagedPackage.emitted(file, ".js"))
    }
    const internal = Object.keys(published).filter((path) => path.startsWith("./internal/"))
    expect(internal).toEqual(patterns)
  })

  it("has a README with an install command, a program and links to documents", () => {
    const peers = Object.keys(manifest.peerDependencies ?? {})
    const command = commands[name] ?? `npm install ${manifest.name}`
    expect(readme).toMatch(new RegExp(`^# ${manifest.name}\n\n[A-Z][^]*?[.]\n\n\`\`\`sh\n${command}[ \n]`))
    for (const peer of peers) expect(readme).toMatch(new RegExp(`^npm install (?:.* )?${peer}(?: |$)`, "m"))
    expect(/^```ts\n/m.test(readme)).toBe(!(name in commands))
    expect(readme).toMatch(/\]\(\.\.\/\.\.\/docs\/guides\/[\w-]+\.md\)/)
    expect(readme).not.toContain("/internal/")
  })

  it("installs what its program imports", () => {
    const [, installed = ""] = /^npm install (.*)$/m.exec(readme) ?? []
    const imported = [...readme.matchAll(/ from "((?:@[^/"]+\/)?[^/".][^/"]*)/g)].flatMap(([, module = ""]) => module)
    const dependencies = imported.filter((module) => !module.startsWith("node:"))
    expect(installed.split(" ")).toEqual(expect.arrayContaining(dependencies))
  })

  it("is documented as missing on npm until the repository has an address", () => {
    for (const text of [readme, read("README.md")])
      expect(text.includes("not on npm yet")).toBe(repository === undefined)
  })
})

describe("a staged package", () => {
  const manifest: StagedPackage.PackageJson = {
    name: "@nereid/core",
    version: "1.2.3",
    exports: { "./Model": "./src/Model.ts" },
    bin: { nereid: "./src/main.ts" },
    files: ["dist"],
    sideEffects: ["./src/main.ts"],
  }
  const address = "https://host.example/owner/nereid"
  const links =
    "[Models](../../docs/guides/models.md#errors), [CLI](../cli/README.md), [Effect](https://effect.website)"

  it("points at emitted files", () => {
    expect(StagedPackage.packageJson(manifest, "core", undefined)).toEqual({
      name: "@nereid/core",
      version: "1.2.3",
      exports: { "./Model": { types: "./dist/Model.d.ts", default: "./dist/Model.js" } },
      bin: { nereid: "./dist/main.js" },
      files: ["dist"],
      sideEffects: ["./dist/main.js"],
    })
  })

  it("names its folder of the repository, where the root has an address", () => {
    expect(StagedPackage.packageJson(manifest, "core", address)).toMatchObject({
      homepage: `${address}/tree/HEAD/packages/core#readme`,
      repository: { type: "git", url: `git+${address}.git`, directory: "packages/core" },
      bugs: { url: `${address}/issues` },
    })
  })

  it("has no repository, homepage or bugs without an address", () => {
    const staged = StagedPackage.packageJson(manifest, "core", StagedPackage.repositoryAddress({}))
    expect(Object.keys(staged)).toEqual(Object.keys(manifest))
  })

  it.each([["git@host.example:owner/nereid.git"], [`${address}.git`], [`${address}/`], [{ url: address }], [""]])(
    "refuses %j as an address",
    (repository) => {
      expect(() => StagedPackage.repositoryAddress({ repository })).toThrow('expected an address like "https://')
      expect(StagedPackage.repositoryAddress({ repository: address })).toBe(address)
    },
  )

  it.each([
    ["package.json", "_package.json"],
    ["packages/server/package.json", "packages/server/_package.json"],
    ["my-package.json", "my-package.json"],
    ["src/main.ts", "src/main.ts"],
  ])("has %s of a template as %s", (path, expected) => {
    expect(StagedPackage.copied(path)).toBe(expected)
  })

  it("has a README with absolute links, or without links to files", () => {
    expect(StagedPackage.readme(links, "core", address)).toBe(
      `[Models](${address}/blob/HEAD/docs/guides/models.md#errors), [CLI](${address}/blob/HEAD/packages/cli/README.md), [Effect](https://effect.website)`,
    )
    expect(StagedPackage.readme(links, "core", undefined)).toBe("Models, CLI, [Effect](https://effect.website)")
  })
})

describe("the program of the README", () => {
  const guides = new Map(names.map((name) => [name, new Guide(`packages/${name}/README.md`)]))
  afterAll(() => {
    for (const guide of guides.values()) guide[Symbol.dispose]()
  })
  const fileOf = (name: string, file = "guide.ts"): string => guides.get(name)?.file(file) ?? ""

  /** Exchanges the ports of a file for others. */
  const change = (file: string, ports: Readonly<Record<number, number>>) =>
    writeFileSync(
      file,
      Object.entries(ports).reduce((text, [from, to]) => text.replace(from, String(to)), readFileSync(file, "utf8")),
    )

  /** The lines that it prints, which are the comments behind `console.log`. */
  const expected = (name: string): string =>
    [...read(`packages/${name}/README.md`).matchAll(/^ *console\.log\(.*\) \/\/ (.*)$/gm)]
      .map(([, line]) => `${line}\n`)
      .join("")

  const run = async (name: string, file = "guide.ts", variables: Readonly<Record<string, string>> = {}) => {
    expect(expected(name)).not.toBe("")
    expect(await new Program([fileOf(name, file)], variables).ended).toMatchObject({ code: 0, output: expected(name) })
  }

  /** The server that other READMEs call. */
  const serve = async () => {
    const { Shout, ShoutLive } = await import(fileOf("cli", "models.ts"))
    const server = await Server.start([Shout], ShoutLive, { http: 0, grpc: 0, metrics: false })
    onTestFinished(() => server.stop())
    return server
  }

  const copyDigits = (to: string) => {
    mkdirSync(join(to, ".."), { recursive: true })
    copyFileSync(join(root, "examples/digits/digits.onnx"), to)
  }

  it("compiles, of each package", () => {
    const folder = mkdtempSync(join(root, "test", ".guide-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const configuration = join(folder, "tsconfig.json")
    const include = [...guides.values()].map((guide) => join(guide.folder, "*.ts"))
    writeFileSync(configuration, JSON.stringify({ extends: join(root, "tsconfig.json"), include }))
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", configuration], { stdio: "inherit" })
  }, 60_000)

  it.each(["core", "protocol"])("runs, of %s", (name) => run(name))

  it("runs, of cluster", () => run("cluster"))

  it("runs, of worker", () => run("worker", "main.ts"))

  it.skipIf(python === undefined)("runs, of python", async () => {
    await run("python", "main.ts", { NEREID_PYTHON: python ?? "" })
  })

  it("runs, of onnx", () => {
    copyDigits(fileOf("onnx", "digits.onnx"))
    return run("onnx")
  })

  it("runs, of image", async () => {
    const picture = sharp({ create: { width: 4, height: 4, channels: 3, background: "#f00" } })
    await picture.jpeg().toFile(fileOf("image", "photo.jpg"))
    await run("image")
  })

  it("runs, of client", async () => {
    const server = await serve()
    change(fileOf("client"), { 8001: server.grpc.port })
    await run("client")
  })

  it("runs, of bench", async () => {
    const server = await serve()
    change(fileOf("bench"), { 8000: server.http.port })
    const { code, output } = await new Program([fileOf("bench")]).ended
    expect(output).toMatch(/^\d+ requests\/s, p99 [\d.]+ ms\n$/)
    expect(code).toBe(0)
  })

  it("serves, of repository", async () => {
    const file = fileOf("repository", "server.ts")
    copyDigits(fileOf("repository", "models/digits/1/model.onnx"))
    change(file, { 8000: 0, 8001: 0, 8002: 0 })
    const program = new Program([file])
    await program.match(/\]\n/)
    program.signal("SIGTERM")
    expect(await program.ended).toMatchObject({ code: 0, output: expect.stringContaining(expected("repository")) })
  })

  it.skipIf(!hasCurl)("serves, and curl prints the documented response, for server", async () => {
    const file = fileOf("server", "server.ts")
    const port = await freePort()
    change(file, { 8000: port, 8001: 0, 8002: 0 })
    const program = new Program([file])
    const ready = async (): Promise<void> => {
      const response = fetch(`http://localhost:${port}/v2/health/ready`).catch(() => undefined)
      const failed = program.ended.then(({ output }) => Promise.reject(new Error(output)))
      if ((await Promise.race([response, failed]))?.status === 200) return
      await new Promise((resolve) => setImmediate(resolve))
      return ready()
    }
    await ready()
    const [, curl = "", answer] = /^(curl [^#]*)# (.*)$/m.exec(read("packages/server/README.md")) ?? []
    expect(await shell(curl.replace("8000", String(port)))).toBe(answer)
    program.signal("SIGTERM")
    expect((await program.ended).code).toBe(0)
  })

  it("serves, of cli, by its command", async () => {
    await using server = nereid(
      "serve",
      fileOf("cli", "models.ts"),
      "--http-port=0",
      "--grpc-port=0",
      "--metrics-port=0",
    )
    await server.match(/shout +1 +READY +32/)
  })
})

describe("a release", () => {
  it("gives all packages one version", () => {
    const [version] = packages.map(({ manifest }) => manifest.version)
    for (const { manifest } of packages) {
      expect(manifest.version, manifest.name).toBe(version)
      for (const [name, range] of Object.entries(manifest.dependencies ?? {})) {
        if (packageOf(name) !== undefined) expect(range, `${manifest.name} → ${name}`).toBe(version)
      }
    }
    expect(JSON.parse(read(".changeset/config.json"))).toMatchObject({
      fixed: [["@nereid/*", "create-nereid"]],
      access: "public",
    })
  })

  it("depends on the versions that the lock file has, and on their patches", () => {
    const { packages: locked } = JSON.parse(read("package-lock.json"))
    for (const { manifest } of packages) {
      for (const [name, range] of Object.entries(manifest.dependencies ?? {})) {
        if (packageOf(name) !== undefined) continue
        // A nested copy would be another version than the tested one.
        const copies = Object.keys(locked).filter((path) => path.endsWith(`node_modules/${name}`))
        expect(copies, name).toEqual([`node_modules/${name}`])
        expect(range, `${manifest.name} → ${name}`).toBe(`~${locked[`node_modules/${name}`].version}`)
      }
    }
  })

  it("leaves the packages of the template as they are: private, with a version for changesets to skip", () => {
    for (const file of globSync("packages/create-nereid/template/packages/*/package.json", { cwd: root })) {
      expect(JSON.parse(read(file)), file).toMatchObject({ private: true, version: "0.0.0" })
    }
  })

  it("knows the packages that its changesets name", () => {
    for (const file of globSync(".changeset/*.md", { cwd: root })) {
      const [, front = ""] = /^---\n([^]*?)\n---\n/.exec(read(file)) ?? []
      const named = [...front.matchAll(/^"(.*)": (?:patch|minor|major)$/gm)].map(([, name]) => name)
      expect(named, file).not.toEqual([])
      expect(packages.map(({ manifest }) => manifest.name)).toEqual(expect.arrayContaining(named))
    }
  })
})
