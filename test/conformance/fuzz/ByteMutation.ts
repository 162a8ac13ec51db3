/** Mutations of valid bytes, without regard to their meaning, and of JSON trees. */
import type { JsonTree } from "./JsonTree.ts"
import type { Random } from "./Random.ts"

export const mutateBytes = (random: Random, bytes: Uint8Array): Uint8Array => {
  const buffer = Buffer.from(bytes)
  const at = random.below(buffer.length + 1)
  const length = random.below(random.chance(0.5) ? 4 : 32)
  const [head, tail] = [buffer.subarray(0, at), buffer.subarray(at)]
  switch (random.below(7)) {
    case 0:
      if (at < buffer.length) buffer[at] = (buffer[at] ?? 0) ^ (1 << random.below(8))
      return buffer
    case 1:
      if (at < buffer.length) buffer[at] = random.pick([0, 0xff, 0x7f, 0x80, 0x22, 0x2c, 0x5d, random.below(256)])
      return buffer
    case 2:
      return Buffer.concat([head, tail.subarray(length)])
    case 3:
      return Buffer.concat([head, random.bytes(length), tail])
    case 4:
      return Buffer.concat([head, tail.subarray(0, length), tail])
    case 5:
      return head
    default:
      return Buffer.concat([head, Buffer.from(random.pick(tokens)), tail])
  }
}

const tokens = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  "\\u",
  "null",
  "true",
  "NaN",
  "-",
  "1e999",
  "0",
  "[[[[[[[[[[",
  " ",
  "\n",
  "\ufeff",
]

/** The same tree but for one node. */
export const mutateTree = (random: Random, tree: JsonTree): JsonTree => {
  if (tree.kind === "object" && tree.members.length > 0 && random.chance(0.85)) {
    const index = random.below(tree.members.length)
    const [key, value] = tree.members[index] ?? ["", { kind: "array", elements: [] }]
    const members = tree.members
    switch (random.below(9)) {
      case 0:
        return { ...tree, members: members.toSpliced(index, 1) }
      case 1:
        return {
          ...tree,
          members: members.toSpliced(random.below(members.length), 0, [
            key,
            random.chance(0.5) ? value : mutateTree(random, value),
          ]),
        }
      case 2:
        return {
          ...tree,
          members: members.with(index, [
            random.pick(["", `${key}s`, key.toUpperCase(), "data", "name", "__proto__"]),
            value,
          ]),
        }
      case 3:
        return { ...tree, members: members.with(index, [key, replacement(random)]) }
      case 4:
        return { ...tree, members: [...members.toSpliced(index, 1), [key, value]] }
      case 5: {
        const added = random.pick(["x", "parameters", "outputs", "id", "binary_data", "classification"])
        const child = { kind: "object" as const, members: [[random.pick(["x", added]), replacement(random)] as const] }
        return { ...tree, members: [...members, [added, random.chance(0.5) ? child : replacement(random)]] }
      }
      default:
        return { ...tree, members: members.with(index, [key, mutateTree(random, value)]) }
    }
  }
  if (tree.kind === "array" && tree.elements.length > 0 && random.chance(0.85)) {
    const index = random.below(tree.elements.length)
    const element = tree.elements[index] ?? replacement(random)
    switch (random.below(7)) {
      case 0:
        return { ...tree, elements: tree.elements.toSpliced(index, 1) }
      case 1:
        return { ...tree, elements: tree.elements.toSpliced(index, 0, element) }
      case 2:
        return { ...tree, elements: tree.elements.with(index, { kind: "array", elements: [element] }) }
      case 3:
        return { kind: "array", elements: [tree] }
      default:
        return { ...tree, elements: tree.elements.with(index, mutateTree(random, element)) }
    }
  }
  return replacement(random)
}

const number = (text: string): JsonTree => ({ kind: "number", text })
const string = (bytes: string): JsonTree => ({ kind: "string", bytes })

const replacements: ReadonlyArray<JsonTree> = [
  { kind: "word", text: "null" },
  { kind: "word", text: "true" },
  { kind: "word", text: "false" },
  { kind: "array", elements: [] },
  { kind: "object", members: [] },
  ...["0", "-0", "1", "-1", "2.0", "1.5", "1e2", "NaN", "-Infinity", "256", "2147483648", "9223372036854775808"].map(
    number,
  ),
  ...["18446744073709551616", "1e400", "1E-400", "123456789012345678901234567890", "-0.0", "0.1"].map(number),
  ...["", "X", "FP32", "1", "\xff", "\xc3\xa4", "a\u0000"].map(string),
]

const replacement = (random: Random): JsonTree => random.pick(replacements)
