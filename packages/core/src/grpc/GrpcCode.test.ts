import { expect, it } from "vitest"
import { codeName, GrpcCode } from "./GrpcCode.ts"

it("codes have the names of the specification", () => {
  expect(codeName(0)).toBe("OK")
  for (const [name, code] of Object.entries(GrpcCode)) expect(codeName(code)).toBe(name)
  expect([codeName(17), codeName(-1), codeName(NaN)]).toEqual([undefined, undefined, undefined])
})
