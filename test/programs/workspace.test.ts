/**
 * A new workspace of `nereid init` and `create-nereid`: its types, its tests, its server and its client, with the
 * packages of this repository in place of installed ones. With installed ones: .ci/try-workspace.
 */
import { execFileSync } from "node:child_process"
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, freePort, hasCurl, Program, root, shell } from "../Program.ts"

/** Below the repository, so that the packages resolve. */
const parent = mkdtempSync(join(root, "test", ".workspace-"))
const folder = join(parent, "my-models")

const read = (path: string) => readFileSync(join(folder, path), "utf8")

const manifest = (path: string): Record<string, Readonly<Record<string, string>>> =>
  JSON.parse(readFileSync(join(path, "package.json"), "utf8"))

/** Runs a program in a directory, and returns its output. */
const inside = (cwd: string, ...args: ReadonlyArray<string>) => new Program(args, {}, cwd).ended

const nereidIn = (cwd: string, ...args: ReadonlyArray<string>) => inside(cwd, join(root, command), ...args)

const createNereid = join(root, "packages/create-nereid/src/main.ts")

beforeAll(async () => {
  const { code, output } = await nereidIn(parent, "init", "my-models")
  expect(output).toMatch(/^Created my-models\. Next:\n\n {2}cd my-models\n {2}npm install\n {2}npm test /)
  expect(code).toBe(0)
  // As npm links the packages of a workspace.
  mkdirSync(join(folder, "node_modules/@my-models"), { recursive: true })
  for (const name of readdirSync(join(folder, "packages"))) {
    symlinkSync(join("../../packages", name), join(folder, "node_modules/@my-models", name), "dir")
  }
})

afterAll(() => rmSync(parent, { recursive: true }))

describe("a new workspace", () => {
  it("has types that fit", { timeout: 60_000 }, () => {
    execFileSync(join(root, "node_modules/.bin/tsc"), { cwd: folder, stdio: "inherit" })
  })

  it("passes its tests", async () => {
    const [, pattern = ""] = /^node --test "(.*)"$/.exec(manifest(folder)["scripts"]?.["test"] ?? "") ?? []
    const { code, output } = await inside(folder, "--test", "--test-reporter=tap", pattern)
    expect(output).toMatch(/^# pass 2$/m)
    expect(code).toBe(0)
  })

  it.skipIf(!hasCurl)("serves what its README says, and stops with 0 at SIGTERM", async () => {
    const [http, grpc, metrics] = [await freePort(), await freePort(), await freePort()]
    const ports = { HTTP_PORT: String(http), GRPC_PORT: String(grpc), METRICS_PORT: String(metrics) }
    const server = new Program(["packages/server/src/main.ts"], ports, folder)
    const client = "packages/client/src/main.ts"
    const ended = server.ended.then(({ output }) => Promise.reject(new Error(output)))
    const ready = async (): Promise<void> => {
      const response = await fetch(`http://localhost:${http}/v2/health/ready`).catch(() => undefined)
      if (response?.status !== 200) return ready()
    }
    await Promise.race([ready(), ended])
    const [, curl = ""] = /```sh\n(curl [^`]*)```/.exec(read("README.md")) ?? []
    expect(JSON.parse(await shell(curl.replace("8000", String(http))))).toMatchObject({
      outputs: [{ data: ["HELLO"] }],
    })
    for (const url of [`grpc://localhost:${grpc}`, `http://localhost:${http}`]) {
      const call = (...texts: ReadonlyArray<string>) =>
        new Program([client, ...texts], { SERVER_URL: url }, folder).ended
      expect(await call("good", "morning")).toMatchObject({ code: 0, output: "GOOD\nMORNING\n" })
      expect(await call()).toMatchObject({ code: 0, output: "HELLO\n" })
    }
    ended.catch(() => undefined) // it is expected to end now
    server.signal("SIGTERM")
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  it("refuses an invalid port, and names its variable", async () => {
    const { code, output } = await new Program(["packages/server/src/main.ts"], { HTTP_PORT: "http" }, folder).ended
    expect(output).toContain("HTTP_PORT")
    expect(code).toBe(1)
  })

  it("asks for the versions that this repository is tested with", () => {
    const { devDependencies: tested = {} } = manifest(root)
    const manifests = [folder, ...globSync(join(folder, "packages/*"))].map(manifest)
    const ranges = manifests
      .flatMap(({ dependencies, devDependencies }) => Object.entries({ ...dependencies, ...devDependencies }))
      .filter(([name]) => !name.startsWith("@nereid/") && !name.startsWith("@my-models/"))
    expect([...new Set(ranges.map(([name]) => name))].toSorted()).toEqual([
      "@effect/platform-node-shared",
      "@types/node",
      "effect",
      "typescript",
    ])
    for (const [name, range] of ranges) expect(range, name).toBe(`^${tested[name]}`)
    expect(manifests[0]?.["engines"]).toEqual(manifest(join(root, "packages/server"))["engines"])
  })

  it("builds an image of what the server needs, in the working directory of its command", () => {
    const lines = read("Dockerfile").split("\n")
    const copied = lines.flatMap((line) => /^COPY (.*) \S+$/.exec(line)?.[1]?.split(" ") ?? [])
    const manifests = ["", ...globSync("packages/*/", { cwd: folder })].map((path) => join(path, "package.json"))
    const expected = [...manifests, "package-lock.json", "packages/contract", "packages/server"]
    expect(copied.toSorted()).toEqual(expected.toSorted())
    expect(lines).toContain(`CMD ["node", "packages/server/src/main.ts"]`)
    expect(manifest(folder)["scripts"]).toMatchObject({ start: "node packages/server/src/main.ts" })
  })
})

describe("the command", () => {
  it("says in one line why there is no workspace, and exits with 1", async () => {
    const refusal =
      'Error: "a/b" cannot be the name of a workspace: it is a path; change to the parent directory, and give the name alone\n'
    for (const ended of [nereidIn(parent, "init", "a/b"), inside(parent, createNereid, "a/b")]) {
      expect(await ended).toMatchObject({ code: 1, output: refusal })
    }
    const { code, output } = await nereidIn(parent, "init", "my-models")
    expect(output).toMatch(/^Error: .*my-models is not empty, it has .*: use another name, or an empty directory\n$/)
    expect(code).toBe(1)
  })

  it("says that the name is missing, and how to give it", async () => {
    expect(await nereidIn(parent, "init")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/argument: name\n[^]*nereid init/),
    })
    const expected =
      "Error: The name of the workspace is missing\nUsage: npm create nereid NAME [-- --packages DIRECTORY]\n"
    expect(await inside(parent, createNereid)).toMatchObject({ code: 1, output: expected })
  })

  it.each([
    [["one", "two"], "Expected one name, got one, two"],
    [["one", "--unknown"], "Unknown option '--unknown'"],
    [["one", "--packages"], "Option '--packages <value>' argument missing"],
  ])("of npm refuses %j", async (args, message) => {
    const { code, output } = await inside(parent, createNereid, ...args)
    expect(output).toMatch(/^Error: [^]*\nUsage: npm create nereid NAME/)
    expect(output).toContain(message)
    expect(code).toBe(1)
    expect(readdirSync(parent)).toEqual(["my-models"])
  })

  it("of npm prints its help", async () => {
    const { code, output } = await inside(parent, createNereid, "--help")
    expect(output).toMatch(/^Usage: npm create nereid NAME [^]*--packages DIRECTORY/)
    expect(code).toBe(0)
  })

  it("installs from the directory of tarballs", async () => {
    const output = expect.stringMatching(/^Error: .* has no nereid-\*-[\d.]+\.tgz: run "npm run build"/)
    expect(await nereidIn(parent, "init", "other", "--packages=.")).toMatchObject({ code: 1, output })
    expect(await inside(parent, createNereid, "other", "--packages=.")).toMatchObject({ code: 1, output })
  })

  it("of npm loads nothing but its check before it has checked the version of Node", () => {
    const files = ["main.ts", "NodeVersion.ts"].map((name) => join(root, "packages/create-nereid/src", name))
    const imports = files.flatMap((file) => readFileSync(file, "utf8").match(/^import .*$/gm) ?? [])
    expect(imports).toEqual([
      'import { readFileSync } from "node:fs"',
      'import { isSupported } from "./NodeVersion.ts"',
    ])
  })
})
