/**
 * Measures the download of a large object, in parallel ranges and in one stream, and prints the figures of
 * docs/guides/object-storage.md: `npx node test/deploy/download.ts`. The store limits each connection, or none.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Semaphore } from "effect"
import { download } from "../../packages/repository/src/storage/cache/Download.ts"
import { defaultRangeBytes } from "../../packages/repository/src/storage/cache/PartialFile.ts"
import { S3Store } from "../../packages/repository/src/storage/store/S3Store.ts"
import { Program } from "../Program.ts"

const megabyte = 1_000_000

/** Runs of each case, in turns; the median counts. */
const runs = 3

const folder = mkdtempSync(join(tmpdir(), "nereid-download-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))

/** Downloads the object of a store once, in ranges of so many bytes. Returns megabytes per second. */
const measure = async (port: string, bytes: number, rangeBytes: number): Promise<number> => {
  const environment = Effect.succeed({ AWS_ACCESS_KEY_ID: "key", AWS_SECRET_ACCESS_KEY: "secret" })
  const store = new S3Store({ endpoint: `http://127.0.0.1:${port}`, bucket: "bucket", path: "", environment })
  const path = join(folder, "weights.bin")
  const program = Effect.gen(function* () {
    const [object] = yield* store.list
    if (object === undefined) throw new Error("the store has no object")
    const requests = Semaphore.makeUnsafe(8)
    const began = performance.now()
    yield* download({ store, object, path, rangeBytes, requests, onBytes: () => undefined })
    return bytes / megabyte / ((performance.now() - began) / 1000)
  })
  const speed = await Effect.runPromise(program)
  if (statSync(path).size !== bytes) throw new Error("the file is not complete")
  rmSync(path)
  rmSync(`${path}.ranges`, { force: true })
  return speed
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? NaN

for (const [name, rate, size] of [
  ["20 MB/s for each connection", 20 * megabyte, 200 * megabyte],
  ["50 MB/s for each connection", 50 * megabyte, 400 * megabyte],
  ["no limit", 0, 1000 * megabyte],
] as const) {
  await using store = new Program(["test/deploy/throttledStore.ts", String(size), String(rate)])
  const [, port = ""] = await store.match(/port (\d+)/)
  const [ranges, single]: [Array<number>, Array<number>] = [[], []]
  await measure(port, size, defaultRangeBytes)
  for (let run = 0; run < runs; run++) {
    ranges.push(await measure(port, size, defaultRangeBytes))
    single.push(await measure(port, size, size))
  }
  const [parallel, one] = [median(ranges), median(single)]
  const figures = `ranges ${parallel.toFixed(0)} MB/s, one stream ${one.toFixed(0)} MB/s`
  console.log(`${name}, ${size / megabyte} MB: ${figures}, ratio ${(parallel / one).toFixed(2)}`)
}
process.exit()
