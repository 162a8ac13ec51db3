import { expect, it } from "vitest"
import * as EntityTag from "./EntityTag.ts"

it("each encoding has its own tag", () => {
  const tags = (["identity", "gzip", "deflate"] as const).map((encoding) => EntityTag.ofEncoding('"a"', encoding))
  expect(tags).toEqual(['"a"', '"a-gzip"', '"a-deflate"'])
})

it.each<[list: string | undefined, isMatch: boolean]>([
  ['"a"', true],
  ['W/"a"', true],
  ['"b", W/"a" ,"c"', true],
  ['"b","a"', true],
  ['"b,c", "a"', true],
  [" * ", true],
  ['"a-gzip"', false],
  ['"*"', false],
  ["a", false],
  ["", false],
  [undefined, false],
])("If-None-Match: %s", (list, isMatch) => {
  expect(EntityTag.matches(list, '"a"')).toBe(isMatch)
})
