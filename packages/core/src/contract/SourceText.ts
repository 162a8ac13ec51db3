/**
 * Formats TypeScript as this project does: on one line if it fits, otherwise one part per line. Supports only the
 * calls, lists and objects of a contract file.
 */

/** Columns of a line. */
export const width = 120

export type Expression =
  | { readonly kind: "word"; readonly text: string }
  | { readonly kind: "call"; readonly callee: string; readonly arguments: ReadonlyArray<Expression> }
  | { readonly kind: "list"; readonly elements: ReadonlyArray<Expression> }
  | { readonly kind: "object"; readonly members: ReadonlyArray<readonly [name: string, value: Expression]> }

export const word = (text: string): Expression => ({ kind: "word", text })

export const call = (callee: string, ...args: ReadonlyArray<Expression>): Expression => ({
  kind: "call",
  callee,
  arguments: args,
})

/** A text in the quotes that need fewer escapes. */
export const quoted = (text: string): string => {
  const json = JSON.stringify(text)
  const count = (quote: string) => text.split(quote).length
  if (count('"') <= count("'")) return json
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

/** A member's name; `__proto__` would be no member otherwise. */
export const key = (name: string): string => {
  if (name === "__proto__") return '["__proto__"]'
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? name : quoted(name)
}

/**
 * `before` and `after` stand in its first and its last line; `indent` are the spaces that its first line begins with.
 */
export const print = (expression: Expression, before: string, after: string, indent: number): string => {
  const flat = `${before}${inline(expression)}${after}`
  if (indent + flat.length <= width || expression.kind === "word") return flat
  return broken(expression, before, after, indent)
}

/** On one line, however long. */
export const inline = (expression: Expression): string => {
  switch (expression.kind) {
    case "word":
      return expression.text
    case "call":
      return `${expression.callee}(${expression.arguments.map(inline).join(", ")})`
    case "list":
      return `[${expression.elements.map(inline).join(", ")}]`
    case "object":
      if (expression.members.length === 0) return "{}"
      return `{ ${expression.members.map(([name, value]) => `${key(name)}: ${inline(value)}`).join(", ")} }`
  }
}

const broken = (expression: Exclude<Expression, { kind: "word" }>, before: string, after: string, indent: number) => {
  switch (expression.kind) {
    case "call": {
      const last = expression.arguments.at(-1)
      const others = expression.arguments.slice(0, -1)
      const opening = `${before}${expression.callee}(${others.map((other) => `${inline(other)}, `).join("")}`
      const isHugged = last?.kind === "object" || (last?.kind === "list" && others.length === 0)
      if (isHugged && indent + opening.length < width) return broken(last, opening, `)${after}`, indent)
      const parts = expression.arguments.map((argument) => print(argument, "", ",", indent + 2))
      return lines(`${before}${expression.callee}(`, parts, `)${after}`, indent)
    }
    case "list": {
      const parts = expression.elements.map((element) => print(element, "", ",", indent + 2))
      return lines(`${before}[`, parts, `]${after}`, indent)
    }
    case "object":
      return object(expression.members, before, after, indent)
  }
}

/** Prints an object with each member on a separate line, even if one line would suffice. */
export const object = (
  members: ReadonlyArray<readonly [name: string, value: Expression]>,
  before: string,
  after: string,
  indent: number,
): string => {
  const parts = members.map(([name, value]) => member(key(name), value, indent + 2))
  return lines(`${before}{`, parts, `}${after}`, indent)
}

/** Prints a member; a call of one argument that does not fit goes on a separate line. */
const member = (name: string, value: Expression, indent: number): string => {
  const flat = `${name}: ${inline(value)},`
  const isCall = value.kind === "call" && value.arguments.length === 1 && value.arguments.every(isFlat)
  return isCall && indent + flat.length > width
    ? `${name}:\n${" ".repeat(indent + 2)}${inline(value)},`
    : print(value, `${name}: `, ",", indent)
}

/** Whether it has no list and no object, which could be broken. */
const isFlat = (expression: Expression): boolean =>
  expression.kind === "word" || (expression.kind === "call" && expression.arguments.every(isFlat))

const lines = (first: string, parts: ReadonlyArray<string>, last: string, indent: number): string => {
  const space = " ".repeat(indent)
  return [first, ...parts.map((part) => `${space}  ${part}`), `${space}${last}`].join("\n")
}
