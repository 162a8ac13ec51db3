/** XML of object stores, and what is refused. */
import { expect, it } from "@effect/vitest"
import * as Xml from "./Xml.ts"

it("elements, texts, entities, attributes and comments are read", () => {
  const root = Xml.parse(
    `<?xml version="1.0"?>\n<A xmlns="http://x/?a=1&amp;b"><!-- no <B> --><B>a &lt;&#x26;&#38;&quot; b</B><B Encoded="true"><![CDATA[<c>]]></B><E/></A>\n`,
  )
  expect(Xml.childrenOf(root, "B").map(({ text }) => text)).toEqual([`a <&&" b`, "<c>"])
  expect(Xml.childrenOf(root, "B")[1]?.attributes).toContain(`Encoded="true"`)
  expect(Xml.childOf(root, "E")?.children).toEqual([])
  expect(Xml.textOf(root, "E")).toBeUndefined()
  expect(Xml.textOf(undefined, "E")).toBeUndefined()
})

it.each([
  ["", "expected one XML element"],
  ["text", "expected one XML element"],
  ["<A/><B/>", "expected one XML element"],
  ["<A>", "the XML ends in element <A>"],
  ["<A></B>", "unexpected XML element </B>"],
  ["</A>", "unexpected XML element </A>"],
  ["<A>&other;</A>", "unexpected XML entity &other;"],
  ["<A>&</A>", "unexpected XML entity &"],
  ["<A>&#x110000;</A>", "unexpected XML entity &#x110000;"],
  [`<!DOCTYPE a [<!ENTITY b "c">]><A>&b;</A>`, "unexpected XML at character 0"],
  ["<A b=c/>", "unexpected XML at character 0"],
  ["<A".repeat(3), "unexpected XML at character 0"],
  ["<A>".repeat(40), "XML elements are nested more than 32 deep"],
])("%s is refused", (document, message) => {
  expect(() => Xml.parse(document)).toThrow(message)
})

it("a document of a megabyte is read in time that grows with its length alone", () => {
  const entry = "<Contents><Key>models/m/1/model.onnx</Key><Size>115</Size></Contents>"
  const document = `<R>${entry.repeat(15_000)}</R>`
  expect(Xml.childrenOf(Xml.parse(document), "Contents")).toHaveLength(15_000)
})
