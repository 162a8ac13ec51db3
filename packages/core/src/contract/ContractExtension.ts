/**
 * Reads the extension of a model's metadata (ContractDocument.ts), and merges it with the contract of the metadata. It
 * may come from any server: an invalid document is refused as a whole, and an entry that contradicts the
 * metadata is ignored.
 */
import { Result, Schema } from "effect"
import { isDataType } from "../tensor/DataType.ts"
import { GrpcCode } from "../grpc/GrpcCode.ts"
import { isReservedTag } from "../error/InferenceError.ts"
import { isErrorKind } from "../wire/ErrorHeaders.ts"
import { errorMessage } from "../error/ErrorMessage.ts"
import type { Dim } from "../tensor/TensorSpec.ts"
import * as Contract from "./Contract.ts"
import type { ContractError, ContractParameter, ContractTensor } from "./Contract.ts"
import { ContractDocument, type Declaration, make, maxLength } from "./ContractDocument.ts"
import * as DefaultDocument from "./DefaultDocument.ts"
import * as JsonType from "./JsonType.ts"
import { fits } from "./TensorForm.ts"

/** The contract with what the text of a document adds to it; or why the document is not used. */
export const merge = (contract: Contract.Contract, text: string): Result.Result<Contract.Contract, string> =>
  Result.map(read(text), (document) => apply(contract, document))

const decode = Schema.decodeUnknownResult(ContractDocument)

const read = (text: string): Result.Result<ContractDocument, string> => {
  if (text.length > maxLength) return Result.fail(`it has ${text.length} characters, more than ${maxLength}`)
  const json = Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is not JSON" })
  return Result.flatMap(json, (json) =>
    Result.mapError(decode(json), (error) =>
      errorMessage(error)
        .replaceAll(/[\p{Cc}\s]+/gu, " ")
        .slice(0, 200),
    ),
  )
}

/** The whole contract of a declaration. */
export const declared = (
  definition: Parameters<typeof Contract.fromDefinition>[0] & Declaration,
): Contract.Contract => {
  const contract = Contract.fromDefinition(definition)
  const made = make(definition)
  return made === undefined ? contract : apply(contract, made.document)
}

/** The contract with the entries of the document that fit it. */
const apply = (contract: Contract.Contract, document: ContractDocument): Contract.Contract => {
  const { parameters, response_parameters: responseParameters, errors, sequence } = document
  const [inputEntries, outputEntries] = [byName(document.inputs), byName(document.outputs)]
  const inputs = contract.inputs.map((tensor) => described(tensor, inputEntries.get(tensor.name), true))
  const required = new Set(inputs.flatMap(({ dims = [], optional }) => (optional === true ? [] : dims)))
  return {
    ...contract,
    inputs: inputs.map((tensor) => {
      const isOpen = tensor.dims?.some((dim) => typeof dim === "string" && !required.has(dim))
      if (isOpen !== true || tensor.default === undefined) return tensor
      const { default: _unused, ...others } = tensor
      return others
    }),
    outputs: contract.outputs.map((tensor) => described(tensor, outputEntries.get(tensor.name), false)),
    ...(parameters === undefined ? {} : { parameters: unique(parameters, "name").map(parameter) }),
    ...(responseParameters === undefined
      ? {}
      : { responseParameters: unique(responseParameters, "name").map(parameter) }),
    ...(errors === undefined ? {} : { errors: unique(errors, "tag").flatMap(declaredError) }),
    ...(sequence === undefined ? {} : { sequence: { maxIdle: sequence.max_idle_microseconds } }),
  }
}

type TensorEntry = NonNullable<ContractDocument["inputs"]>[number]

const byName = (entries: ReadonlyArray<TensorEntry> = []): ReadonlyMap<string, TensorEntry> =>
  new Map(entries.toReversed().map((entry) => [entry.name, entry]))

const described = (tensor: ContractTensor, entry: TensorEntry | undefined, isInput: boolean): ContractTensor => {
  if (entry === undefined) return tensor
  const { form, schema, labels, default: preset } = entry
  const dims = named(tensor.dims, entry.dims)
  const { datatype } = tensor
  const hasForm = form !== undefined && fits(form, tensor)
  const isPreset = isInput && tensor.optional !== false && preset !== undefined && isDataType(datatype)
  const found = isPreset ? DefaultDocument.read(datatype, dims ?? [], preset) : undefined
  return {
    ...tensor,
    dims,
    ...(hasForm ? { form } : {}),
    ...(hasForm && form === "json" && schema !== undefined ? { json: json(schema) } : {}),
    ...(labels === undefined || labels.length === 0 ? {} : { labels }),
    ...(found === undefined ? {} : { optional: true, default: found }),
  }
}

/** Names for variable dims; the metadata's dims if the others differ from them. */
const named = (dims: ContractTensor["dims"], others: ReadonlyArray<Dim> | undefined): ContractTensor["dims"] => {
  if (dims === undefined || others?.length !== dims.length) return dims
  const agrees = others.every((other, axis) => other === dims[axis] || (typeof other === "string" && dims[axis] === -1))
  return agrees ? others : dims
}

type ParameterEntry = NonNullable<ContractDocument["parameters"]>[number]

const parameter = ({ name, schema, optional = false, default: preset }: ParameterEntry): ContractParameter => ({
  name,
  json: JsonType.scalar(json(schema)),
  optional,
  ...(optional && preset !== undefined ? { default: preset } : {}),
})

type ErrorEntry = NonNullable<ContractDocument["errors"]>[number]

const declaredError = ({
  tag,
  http_status: http,
  grpc_code: grpc,
  schema,
}: ErrorEntry): ReadonlyArray<ContractError> => {
  if (!isErrorKind(tag) || isReservedTag(tag) || http < 400 || http > 599 || !isCode(grpc)) return []
  return [{ tag, http, grpc, json: json(schema) }]
}

const isCode = (name: string): name is keyof typeof GrpcCode => Object.hasOwn(GrpcCode, name)

/** The first entry of each name. */
const unique = <K extends string, E extends { readonly [member in K]: string }>(
  entries: ReadonlyArray<E>,
  member: K,
): ReadonlyArray<E> => [...new Map(entries.toReversed().map((entry) => [entry[member], entry])).values()].toReversed()

const json = ({ $defs, ...schema }: { readonly [keyword: string]: unknown }): JsonType.JsonDocument =>
  JsonType.fromJsonSchema({ schema, definitions: definitions($defs) })

const definitions = (given: unknown): { readonly [name: string]: object } => {
  if (typeof given !== "object" || given === null) return {}
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, object] => Object(entry[1]) === entry[1]),
  )
}
