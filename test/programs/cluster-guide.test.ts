/**
 * The programs of the guide on clusters: two runners as processes, called by any of them and by a third process. The
 * database is a file of SQLite; test/deploy/cluster.test.ts has PostgreSQL, and runners that come and go.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Effect } from "effect"
import type { Sums as SumsFixture } from "../../packages/cluster/src/Sums.fixture.ts"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Guide } from "../Guide.ts"
import { freePort, Program, root } from "../Program.ts"

const guide = new Guide("docs/guides/cluster.md")
const folder = mkdtempSync(join(tmpdir(), "nereid-cluster-"))
const runners: Array<{ readonly program: Program; readonly http: number; readonly grpc: number }> = []

const start = async () => {
  const [port, http, grpc] = await Promise.all([freePort(), freePort(), freePort()])
  const variables = { HOST: "127.0.0.1", PORT: `${port}`, HTTP_PORT: `${http}`, GRPC_PORT: `${grpc}` }
  const program = new Program([guide.file("runner.ts")], variables)
  runners.push({ program, http, grpc })
  await program.match(new RegExp(`${http}`))
}

beforeAll(async () => {
  guide.compile()
  const fixture = join(root, "packages/cluster/src/store/Sqlite.fixture.ts")
  const file = JSON.stringify(join(folder, "cluster.sqlite"))
  writeFileSync(
    guide.file("database.ts"),
    `import { layer } from "${fixture}"\nexport const DatabaseLive = layer(${file})\n`,
  )
  await Promise.all([start(), start()])
})

afterAll(async () => {
  await Promise.all(runners.map(({ program }) => program[Symbol.asyncDispose]()))
  guide[Symbol.dispose]()
  rmSync(folder, { recursive: true })
})

const infer = async (port: number, parameters: object, value: number): Promise<unknown> => {
  const response = await fetch(`http://127.0.0.1:${port}/v2/models/sums/infer`, {
    method: "POST",
    body: JSON.stringify({
      parameters,
      inputs: [{ name: "VALUE", datatype: "FP32", shape: [1, 1], data: [value] }],
    }),
  })
  return response.json()
}

const total = (TOTAL: number) => expect.objectContaining({ outputs: [expect.objectContaining({ data: [TOTAL] })] })

it("requests of a sequence reach its owner from every runner, over HTTP", async () => {
  const [one, other] = runners.map(({ http }) => http)
  const ids = Array.from({ length: 8 }, (_, index) => index + 1)
  for (const id of ids) {
    expect(await infer(one ?? 0, { sequence_id: id, sequence_start: true }, id)).toEqual(total(id))
    expect(await infer(other ?? 0, { sequence_id: id }, 10)).toEqual(total(id + 10))
    expect(await infer(one ?? 0, { sequence_id: id, sequence_end: true }, 1)).toEqual(total(id + 11))
  }
  const after = await infer(other ?? 0, { sequence_id: 1 }, 1)
  expect(after).toEqual({ error: expect.stringContaining("must specify the START flag") })
  // Both have executed some of them.
  for (const { http } of runners) {
    const stats = await (await fetch(`http://127.0.0.1:${http}/v2/models/sums/stats`)).text()
    expect(stats).toMatch(/"inference_count":"?[1-9]/)
  }
})

it("sessions of a typed client go through any runner", async () => {
  const { Sums }: { readonly Sums: typeof SumsFixture } = await import(guide.file("models.ts"))
  await using sums = await Client.connect(Sums, { url: runners.map(({ grpc }) => `grpc://127.0.0.1:${grpc}`) })
  await using session = sums.session()
  expect(await session.infer({ VALUE: 1 })).toEqual({ TOTAL: 1 })
  expect(await session.end({ VALUE: 2 })).toEqual({ TOTAL: 3 })
})

it("another process opens the same session", async () => {
  const { total } = await import(guide.file("caller.ts"))
  expect(await Effect.runPromise(total)).toEqual({ TOTAL: 3 })
})
