import { expect, it } from "vitest"
import * as Checks from "./Checks.ts"

it("a check that rejects or hangs is a failed finding", async () => {
  const failed = (message: string) => [{ name: "part", status: "failed", message }]
  const reject = () => Promise.reject(new Error("no such thing"))
  expect(await Checks.attempt("part", reject)).toEqual(failed("no such thing"))
  const hang = () => new Promise<never>(() => {})
  expect(await Checks.attempt("part", hang, 1)).toEqual(failed("no result within 0.001 s"))
})
