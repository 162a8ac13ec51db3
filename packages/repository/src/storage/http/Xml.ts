/**
 * A strict parser of the XML that object stores send: elements, their attributes as they are
 * written, and texts. A document type, which could define entities, is refused, as is all that is not well-formed.
 */

export interface XmlElement {
  readonly name: string
  /** Attributes as they are written. */
  readonly attributes: string
  /** All texts directly in it. */
  readonly text: string
  readonly children: ReadonlyArray<XmlElement>
}

/** Maximum depth of elements; listings have 5. */
const maxDepth = 32

const token =
  /<\?[^]*?\?>|<!--[^]*?-->|<!\[CDATA\[([^]*?)\]\]>|<\/([\w:.-]+)\s*>|<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y

interface OpenElement {
  readonly name: string
  readonly attributes: string
  text: string
  readonly children: Array<XmlElement>
}

/**
 * @throws Error with the reason
 */
export const parse = (document: string): XmlElement => {
  const root: OpenElement = { name: "", attributes: "", text: "", children: [] }
  const open: Array<OpenElement> = [root]
  let position = 0
  while (position < document.length) {
    token.lastIndex = position
    const found = token.exec(document)
    if (found === null) throw new Error(`unexpected XML at character ${position}`)
    position = token.lastIndex
    const [, cdata, closed, opened, attributes = "", isEmpty, text] = found
    const current = open.at(-1) ?? root
    if (cdata !== undefined) current.text += cdata
    else if (text !== undefined) current.text += decoded(text)
    else if (closed !== undefined) {
      if (open.length === 1 || closed !== current.name) throw new Error(`unexpected XML element </${closed}>`)
      open.pop()
    } else if (opened !== undefined) {
      const element: OpenElement = { name: opened, attributes, text: "", children: [] }
      current.children.push(element)
      if (open.length > maxDepth) throw new Error(`XML elements are nested more than ${maxDepth} deep`)
      if (isEmpty === "") open.push(element)
    }
  }
  const [only, ...others] = root.children
  if (open.length > 1) throw new Error(`the XML ends in element <${open.at(-1)?.name}>`)
  if (only === undefined || others.length > 0 || root.text.trim() !== "") throw new Error("expected one XML element")
  return only
}

export const childrenOf = (element: XmlElement | undefined, name: string): ReadonlyArray<XmlElement> =>
  element?.children.filter((child) => child.name === name) ?? []

export const childOf = (element: XmlElement | undefined, name: string): XmlElement | undefined =>
  childrenOf(element, name)[0]

/** Text of a child; undefined without one, or if it is empty. */
export const textOf = (element: XmlElement | undefined, name: string): string | undefined =>
  childOf(element, name)?.text || undefined

const entities: ReadonlyMap<string, string> = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
])

const decoded = (text: string): string =>
  text.replaceAll(/&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(\w+));|&/g, (found, hex, decimal, name) => {
    if (typeof name === "string" && entities.has(name)) return entities.get(name) ?? ""
    const code = typeof hex === "string" ? parseInt(hex, 16) : Number(decimal)
    if (!(code > 0 && code <= 0x10_ff_ff)) throw new Error(`unexpected XML entity ${found}`)
    return String.fromCodePoint(code)
  })
