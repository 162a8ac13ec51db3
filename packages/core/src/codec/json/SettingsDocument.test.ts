import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as SettingsDocument from "./SettingsDocument.ts"

const read = (text: string) =>
  Result.match(SettingsDocument.read(new TextEncoder().encode(text)), {
    onFailure: ({ _tag, message }) => `${_tag}: ${message}`,
    onSuccess: (settings) => Object.fromEntries(settings),
  })

it("reads settings of every kind", () => {
  expect(
    read(' {"b":true,"n":18446744073709551615,"s":"ä","a":["x","y"],"z":null,"o":{"x":[1]},"m":[1,"x"]} '),
  ).toEqual({
    b: { kind: "boolean", value: true },
    n: { kind: "number", value: "18446744073709551615" },
    s: { kind: "string", value: "ä" },
    a: { kind: "strings", value: ["x", "y"] },
    z: { kind: "null" },
    o: { kind: "other" },
    m: { kind: "other" },
  })
})

it.each(["", " \n", "{}"])("%j has no settings", (text) => {
  expect(read(text)).toEqual({})
})

it.each([
  ["[]", "MalformedRequest: attempt to access JSON non-object as object"],
  ["{", "MalformedRequest: failed to parse the request JSON buffer: "],
  ['{"a":1} x', "MalformedRequest: failed to parse the request JSON buffer: "],
  ['{"a":tru}', "MalformedRequest: failed to parse the request JSON buffer: "],
  ["[", "MalformedRequest: failed to parse the request JSON buffer: "],
  [
    `{${Array.from({ length: 1025 }, (_, index) => `"${index}":1`).join()}}`,
    "MalformedRequest: failed to parse the request JSON buffer: more than 1024 members",
  ],
])("refuses %.20s", (text, expected) => {
  expect(read(text)).toContain(expected)
})
