/**
 * Reads and writes the parameter maps of messages in their usual form: entries of a name and a value.
 * KnownParameters.ts validates them; ProtobufCodec.ts decodes all other forms.
 */
import type { Parameter, Parameters } from "../../request/Request.ts"
import * as KnownParameters from "../../wire/KnownParameters.ts"
import * as ProtobufReader from "./ProtobufReader.ts"
import * as ProtobufWriter from "./ProtobufWriter.ts"

/** A parameter of a message, and how it said its type. */
interface Entry {
  readonly name: string
  readonly choice: Choice
}

/** Reads the entry of a parameter up to `end`; undefined if it is not in its usual form. */
export const read = (reader: ProtobufReader.ProtobufReader, end: number): Entry | undefined => {
  if (reader.tag() !== tags.name) return undefined
  const name = reader.name(reader.end(end))
  if (reader.failed || reader.tag() !== tags.value || reader.end(end) !== end) return undefined
  const choice = readChoice(reader, end)
  // An assignment would not make a property of that name.
  if (reader.failed || choice === undefined || reader.position !== end || name === "__proto__") return undefined
  return { name, choice }
}

/** Reads the entry of a request parameter; undefined also if a request must not have it. */
export const readOfRequest = (reader: ProtobufReader.ProtobufReader, end: number): Entry | undefined => {
  const entry = read(reader, end)
  if (entry === undefined || KnownParameters.messageProblem(entry.name, entry.choice) !== undefined) return undefined
  return entry
}

type Choice = Exclude<KnownParameters.Choice, { readonly case: undefined }>

const readChoice = (reader: ProtobufReader.ProtobufReader, end: number): Choice | undefined => {
  switch (reader.tag()) {
    case tags.bool: {
      const value = reader.varint()
      return value <= 1 ? { case: "boolParam", value: value === 1 } : undefined
    }
    case tags.int64:
      return { case: "int64Param", value: BigInt.asIntN(64, reader.varint64()) }
    case tags.string:
      return { case: "stringParam", value: reader.text(reader.end(end)) }
    case tags.double:
      return { case: "doubleParam", value: reader.double(end) }
    case tags.uint64:
      return { case: "uint64Param", value: reader.varint64() }
    default:
      return undefined
  }
}

/** Bytes of the entries, in fields that have a number up to 15. */
export const length = (parameters: Parameters): number => {
  let sum = 0
  for (const name of Object.keys(parameters)) sum += ProtobufWriter.delimitedLength(entryLength(name, parameters[name]))
  return sum
}

/** Each entry as the field of the message that `tag` is of. */
export const write = (writer: ProtobufWriter.ProtobufWriter, tag: number, parameters: Parameters): void => {
  for (const name of Object.keys(parameters)) {
    const value = parameters[name]
    writer.open(tag, entryLength(name, value))
    writer.text(tags.name, name)
    writer.open(tags.value, choiceLength(value))
    writeChoice(writer, value)
  }
}

const entryLength = (name: string, value: Parameter | undefined): number =>
  ProtobufWriter.textLength(name) + ProtobufWriter.delimitedLength(choiceLength(value))

const choiceLength = (value: Parameter = false): number => {
  switch (typeof value) {
    case "boolean":
      return 2
    case "string":
      return ProtobufWriter.textLength(value)
    case "number":
      return 9
    default:
      return 1 + ProtobufWriter.varint64Length(value)
  }
}

const writeChoice = (writer: ProtobufWriter.ProtobufWriter, value: Parameter = false): void => {
  switch (typeof value) {
    case "boolean":
      writer.byte(tags.bool)
      return writer.byte(value ? 1 : 0)
    case "string":
      return writer.text(tags.string, value)
    case "number":
      writer.byte(tags.double)
      return writer.double(value)
    default:
      writer.byte(value > maxInt64 ? tags.uint64 : tags.int64)
      return writer.varint64(value)
  }
}

const maxInt64 = 2n ** 63n - 1n

const tags = {
  name: ProtobufReader.delimited(1),
  value: ProtobufReader.delimited(2),
  bool: ProtobufReader.varint(1),
  int64: ProtobufReader.varint(2),
  string: ProtobufReader.delimited(3),
  double: ProtobufReader.fixed64(4),
  uint64: ProtobufReader.varint(5),
} as const
