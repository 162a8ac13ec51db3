/**
 * `npm run bench -- --beside triton`: our server beside another one, both on one core with the same requests. A part of
 * the loads and numbers of callers can be chosen, so that the page is measured in parts.
 */
import * as BesidePage from "./BesidePage.ts"
import { type BesideLoad, callers, isSpoken, loads } from "./BesideLoads.ts"
import * as Child from "./Child.ts"
import { compare, type Settings } from "./Comparison.ts"
import type { Cores } from "./Cores.ts"
import * as OtherServer from "./OtherServer.ts"
import * as RequestLoad from "./RequestLoad.ts"
import * as Side from "./Side.ts"

export interface BesideOptions {
  readonly other: OtherServer.Name
  readonly settings: Settings
  readonly cores: Cores | undefined
  /** Default all. */
  readonly only: ReadonlyArray<string> | undefined
  /** Default all. */
  readonly callers: ReadonlyArray<number> | undefined
}

/** Measures the rows; the kinds of wrong replies are added to `errors`. Returns nothing if the other cannot start. */
export const measure = async (
  { other: name, settings, cores, only, callers: counts = callers }: BesideOptions,
  errors: Array<string>,
): Promise<ReadonlyArray<BesidePage.BesideRow>> => {
  const kind = OtherServer.kinds[name]
  const rows: Array<BesidePage.BesideRow> = []
  for (const load of chosen(only)) {
    if (!isSpoken(load, kind)) continue
    const other = await kind.start(cores?.server)
    if (typeof other === "string") {
      console.log(`Skipped: ${other}`)
      return rows
    }
    const child = await Child.start(new URL("./server.ts", import.meta.url), cores?.server)
    try {
      const missing = await other.missing(load.model)
      if (missing !== undefined) {
        console.log(`Skipped ${load.name}: ${missing}`)
        continue
      }
      for (const [index, count] of counts.entries()) {
        const request = load.of(count)
        const warmUp = index === 0 ? settings.warmUp : settings.seconds
        const comparison = await compare(
          load.name,
          ours(child, request, await RequestLoad.replyLength(child, request)),
          theirs(other, request, await RequestLoad.replyLength(other, request)),
          { ...settings, warmUp },
        )
        errors.push(...comparison.errors)
        const row = { load, callers: count, comparison }
        console.error(BesidePage.summary(row))
        rows.push(row)
      }
    } finally {
      await Promise.all([child.stop(), other.stop()])
    }
  }
  return rows
}

const ours = (child: Child.Child, request: RequestLoad.RequestLoad, replyLength: number): Side.Side =>
  Side.server(child, RequestLoad.target(child, request, replyLength), request.connections, request.concurrency)

const theirs = (other: OtherServer.OtherServer, request: RequestLoad.RequestLoad, replyLength: number): Side.Side =>
  Side.foreign(other, RequestLoad.target(other, request, replyLength), request.connections, request.concurrency)

const chosen = (only: ReadonlyArray<string> | undefined): ReadonlyArray<BesideLoad> =>
  only === undefined
    ? loads
    : only.map((name) => {
        const found = loads.find((load) => load.name === name)
        if (found !== undefined) return found
        throw new Error(`--only names ${name}, expected one of ${loads.map((load) => load.name).join(", ")}`)
      })
