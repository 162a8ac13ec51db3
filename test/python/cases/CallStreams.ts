/** Calls of decoupled models, and iterators over their responses. */
import { expect } from "vitest"
import type { PythonCase } from "../PythonCase.ts"
import { call } from "./CallCode.ts"

export const callStreamCases: ReadonlyArray<PythonCase> = [
  {
    name: "give an iterator over the responses of a decoupled model",
    proves: [
      "P6.decoupled.one",
      "P6.decoupled.several",
      "P3.iterator.items",
      "P3.iterator.final",
      "P3.iterator.next",
      "P3.iterator.replay",
      "P3.iterator.cancel",
    ],
    run: async (server) => {
      const all = (expression: string) => call(server, `return values(${expression}.exec(decoupled=True))`)
      // The last response is final, and then there is an empty one for a final flag by itself.
      expect(await all("counting(3)")).toBe("[[[0]], [[1]], [[2]]]")
      expect(await all("counting(-3)")).toBe("[[[0]], [[1]], [[2]], []]")
      expect(await all("counting(0)")).toBe("[[]]")
      expect(await all("request_of()")).toBe("[[[[11.0, 22.0, 33.0, 44.0]]]]")
      const again = `iterator = counting(2).exec(decoupled=True)
first = values([next(iterator), next(iterator)])
return [first, next(iterator, "nothing"), values(iterator) == values(iterator) == first]`
      expect(await call(server, again)).toBe("[[[[0]], [[1]]], 'nothing', True]")
      const cancelled = `iterator = counting(1000).exec(decoupled=True)
next(iterator)
iterator.cancel()
last = list(iterator)[-1]
return last.has_error() and int(last.error().code()) or "finished"`
      expect(await call(server, cancelled)).toMatch(/^(7|finished)$/)
      const late = `iterator = counting(1).exec(decoupled=True)
list(iterator)
iterator.cancel()
return values(iterator)`
      expect(await call(server, late)).toBe("[[[0]]]")
    },
  },
]
