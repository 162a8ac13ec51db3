/** The project of the guide, file by file: its tests pass, it compiles, and its server answers as the guide says. */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Guide } from "../Guide.ts"
import { freePort, hasCurl, Program, root, shell } from "../Program.ts"

const path = "docs/guides/first-project.md"
const text = readFileSync(join(root, path), "utf8")
const guide = new Guide(path)
afterAll(() => guide[Symbol.dispose]())

beforeAll(() => {
  for (const [, file = "", content = ""] of text.matchAll(/^`([\w./-]+)`:\n\n```json\n([^]*?)^```/gm)) {
    mkdirSync(dirname(guide.file(file)), { recursive: true })
    writeFileSync(guide.file(file), content)
  }
  // The links that `npm install` makes. Nereid is in a folder above.
  mkdirSync(guide.file("node_modules/@my-models"), { recursive: true })
  for (const name of ["contract", "server", "client"]) {
    const { name: full }: { name: string } = JSON.parse(
      readFileSync(guide.file(`packages/${name}/package.json`), "utf8"),
    )
    symlinkSync(guide.file(`packages/${name}`), guide.file(`node_modules/${full}`))
  }
})

const { scripts }: { scripts: Record<string, string> } = JSON.parse(/^```json\n([^]*?)^```/m.exec(text)?.[1] ?? "")

it("its tests pass", async () => {
  const [, , pattern = ""] = /^node (--test) "(.*)"$/.exec(scripts["test"] ?? "") ?? []
  const { code, output } = await new Program(["--test", guide.file(pattern)]).ended
  expect(output).toMatch(/pass 2\n/)
  expect(code).toBe(0)
})

it("it compiles, with the options of the guide", { timeout: 60_000 }, () => {
  expect(scripts["check"]).toBe("tsc")
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", guide.folder], { stdio: "inherit" })
})

it("each package declares what it imports", () => {
  for (const name of ["contract", "server", "client"]) {
    const { dependencies, devDependencies = {} } = JSON.parse(
      readFileSync(guide.file(`packages/${name}/package.json`), "utf8"),
    )
    const sources = [...text.matchAll(new RegExp(`^// packages/${name}/src/(\\S+)\\n([^]*?)^\`\`\``, "gm"))]
    const imported = sources.flatMap(([, file = "", source = ""]) =>
      [...source.matchAll(/ from "(@[^/"]+\/[^/"]+|[a-z][\w-]*)[^"]*"/g)].map(([, module = ""]) => ({
        module,
        isTest: file.endsWith(".test.ts"),
      })),
    )
    const undeclared = imported.filter(
      ({ module, isTest }) => module !== "node" && !(module in dependencies) && !(isTest && module in devDependencies),
    )
    expect(undeclared).toEqual([])
  }
})

const ready = async (program: Program, port: number): Promise<void> => {
  const failed = program.ended.then(({ output }) => Promise.reject(new Error(output)))
  const response = fetch(`http://localhost:${port}/v2/health/ready`).catch(() => undefined)
  if ((await Promise.race([response, failed]))?.status === 200) return
  await new Promise((resolve) => setImmediate(resolve))
  return ready(program, port)
}

it.skipIf(!hasCurl)("its server answers the client and curl", async () => {
  const [http, grpc, metrics] = [await freePort(), await freePort(), await freePort()]
  const file = guide.file("packages/server/src/main.ts")
  const source = readFileSync(file, "utf8")
  writeFileSync(
    file,
    source.replace("8000", String(http)).replace("8001", String(grpc)).replace("8002", String(metrics)),
  )
  await using server = new Program([file])
  await ready(server, http)
  const [, hello = "", output = ""] = /^node packages\/client\/src\/main\.ts (.*)\n((?:# .*\n)+)/m.exec(text) ?? []
  const client = new Program([guide.file("packages/client/src/main.ts"), ...hello.split(" ")], {
    SERVER_URL: `grpc://localhost:${grpc}`,
  })
  expect(await client.ended).toEqual({ code: 0, signal: null, output: output.replaceAll(/^# /gm, "") })
  const [, curl = "", answer = ""] = /^(curl -s localhost:8000\S+ \\\n.*)\n# (.*)$/m.exec(text) ?? []
  expect(await shell(curl.replace("8000", String(http)))).toBe(answer)
})
