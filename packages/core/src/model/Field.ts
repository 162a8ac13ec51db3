/**
 * Fields: Schemas that know their tensor. `Type` is what code sees (a tensor, a string, a label), `Encoded` is the
 * tensor on the wire, and an annotation carries datatype and dims, from which the signature is derived. Any Schema that
 * decodes from one of these is a field too, so domain types compose with `Schema.decodeTo` and `check`.
 *
 * Schema looks at a tensor's envelope only, never at its elements: that would cost 24 ms for a picture.
 */
import { Effect, Schema, SchemaAST, SchemaIssue, SchemaTransformation } from "effect"
import { type DataType, type ElementArrays, view, byteWidth, type FixedDataType } from "../tensor/DataType.ts"
import { datatype, type DataTypeName, type DataTypeNamed } from "../tensor/DataTypeName.ts"
import { errorMessage } from "../error/ErrorMessage.ts"
import { jsonExample } from "./JsonExample.ts"
import { type Element, elementBytes } from "../tensor/Element.ts"
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import {
  type DefaultTensor,
  type Dim,
  matches,
  print,
  type ShapeOf,
  type TensorForm,
  type TensorSpec,
} from "../tensor/TensorSpec.ts"
import { make, TypedTensor, type Shape } from "../tensor/TypedTensor.ts"

declare module "effect/Schema" {
  namespace Annotations {
    interface Annotations {
      /** Datatype and dims of the tensor that this Schema stands for on the wire. */
      readonly tensor?: TensorAnnotation | undefined
      /** Default of an optional input that a request omits. */
      readonly tensorDefault?: DefaultTensor | undefined
    }
  }
}

export interface TensorAnnotation {
  readonly datatype: DataType
  readonly dims: ReadonlyArray<Dim>
  readonly labels?: ReadonlyArray<string>
  /** Bytes of a valid element, for BYTES [1]. */
  readonly example?: () => Uint8Array
  readonly form?: TensorForm
  readonly jsonSchema?: () => JsonSchema
}

/** A Schema whose encoded side is a tensor and which needs no services. */
export interface Field extends Schema.Constraint {
  readonly Encoded: TypedTensor | undefined
  readonly DecodingServices: never
  readonly EncodingServices: never
}

export interface Fields {
  readonly [name: PropertyKey]: Field
}

/** A field that shows the tensor itself. */
export interface Plain<D extends DataType, S extends Shape, N extends string = never> extends Schema.declare<
  TypedTensor<D, S>
> {
  /** For types alone: the names of its symbolic dims. */
  readonly "~symbols"?: N
  readonly Rebuild: Plain<D, S, N>
}

type SymbolOf<Dims extends ReadonlyArray<Dim>> = Extract<Dims[number], string>

/** The names of the symbolic dims of fields, also of those that are made of others by Schema's combinators. */
export type SymbolsOf<F extends Fields> = { readonly [K in keyof F]: Symbols<F[K]> }[keyof F] & string

type Symbols<F> = "~symbols" extends keyof F
  ? NonNullable<F["~symbols"]>
  : F extends { readonly schema: infer S }
    ? Symbols<S>
    : F extends { readonly from: infer S }
      ? Symbols<S>
      : never

/** The datatype of a field's tensor. */
export type DataTypeOf<F extends Field> = NonNullable<F["Encoded"]> extends TypedTensor<infer D, infer _> ? D : never

const annotated = <D extends DataType, const Dims extends ReadonlyArray<Dim>>(
  datatype: D,
  dims: Dims,
  more: Omit<TensorAnnotation, "datatype" | "dims"> = {},
): Plain<D, ShapeOf<Dims>, SymbolOf<Dims>> =>
  Schema.declare(
    (value): value is TypedTensor<D, ShapeOf<Dims>> =>
      value instanceof TypedTensor && value.datatype === datatype && matches(dims, value.shape),
    {
      expected: `a tensor ${print(datatype, dims)}`,
      tensor: { datatype, dims, ...more },
    },
  )

const plain =
  <D extends DataType>(datatype: D) =>
  <const Dims extends ReadonlyArray<Dim>>(...dims: Dims): Plain<D, ShapeOf<Dims>, SymbolOf<Dims>> =>
    annotated(datatype, dims, { form: "tensor" })

/** Booleans, as 0 and 1 in a Uint8Array; `Tensor.BOOL(…)` takes the extents, a name or -1 for a variable one. */
export const BOOL = plain("BOOL")
/** Unsigned 8-bit integers. */
export const UINT8 = plain("UINT8")
/** Unsigned 16-bit integers. */
export const UINT16 = plain("UINT16")
/** Unsigned 32-bit integers. */
export const UINT32 = plain("UINT32")
/** Unsigned 64-bit integers, as bigint. */
export const UINT64 = plain("UINT64")
/** Signed 8-bit integers. */
export const INT8 = plain("INT8")
/** Signed 16-bit integers. */
export const INT16 = plain("INT16")
/** Signed 32-bit integers. */
export const INT32 = plain("INT32")
/** Signed 64-bit integers, as bigint. */
export const INT64 = plain("INT64")
/** Half-precision floats, in a Float16Array where Node has it (24). */
export const FP16 = plain("FP16")
/** Single-precision floats. */
export const FP32 = plain("FP32")
/** Double-precision floats. */
export const FP64 = plain("FP64")
/** bfloat16 floats, as their 16 bits in a Uint16Array. */
export const BF16 = plain("BF16")
/** Byte strings, each a Uint8Array. */
export const BYTES = plain("BYTES")

/**
 * A tensor of a datatype by its name in the protocol ("FP32"), in Triton's configurations ("TYPE_FP32") or in numpy
 * ("float32"): `Tensor.of("float32", 3)` is `Tensor.FP32(3)`. Ambiguous names such as `float` are rejected.
 * @throws TypeError for an unknown name
 */
export const of = <const N extends DataTypeName, const Dims extends ReadonlyArray<Dim>>(
  name: N,
  ...dims: Dims
): Plain<DataTypeNamed<N>, ShapeOf<Dims>, SymbolOf<Dims>> => annotated(datatype(name), dims, { form: "tensor" })

// `ignoreBOM`: a leading U+FEFF is part of the text.
/** Of texts; a leading U+FEFF is part of the text. */
export const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** BYTES [1] on the wire, a string in code. Bytes that are not UTF-8, and text that has no UTF-8, are refused. */
export const utf8 = () => text(annotated("BYTES", [1], { form: "utf8" }))

/** BYTES [1] on the wire, JSON text of the Schema's encoded form; the decoded value in code. */
export const json = <T, E>(schema: Schema.Codec<T, E>) => {
  const codec = Schema.toCodecJson(schema)
  const bytes = annotated("BYTES", [1], {
    example: () => encoder.encode(jsonExample(codec)),
    form: "json",
    jsonSchema: () => Schema.toJsonSchemaDocument(codec),
  })
  return text(bytes).pipe(Schema.decodeTo(Schema.fromJsonString(codec)))
}

const text = (bytes: Plain<"BYTES", readonly [1]>) =>
  bytes.pipe(
    Schema.decodeTo(
      Schema.String,
      SchemaTransformation.transformEffect({
        decode: ({ data: [element = new Uint8Array()] }, options) =>
          Effect.try({
            try: () => decoder.decode(element),
            catch: () => invalid("expected UTF-8 text", element, options),
          }),
        encode: (text, options) =>
          text.isWellFormed()
            ? Effect.succeed(make("BYTES", [1], [encoder.encode(text)]))
            : Effect.fail(invalid("expected text without half surrogate pairs", text, options)),
      }),
    ),
  )

/** Type of `scalar` in code: bigint for 64-bit integers, boolean for BOOL, number for other datatypes. */
export type ScalarType<D extends FixedDataType> = D extends "BOOL"
  ? boolean
  : D extends "INT64" | "UINT64"
    ? bigint
    : number

type ScalarDataType = Exclude<FixedDataType, "BF16">

const scalarSchemas: { readonly [D in ScalarDataType]: Schema.Codec<ScalarType<D>> } = {
  BOOL: Schema.Boolean,
  UINT8: Schema.Number,
  UINT16: Schema.Number,
  UINT32: Schema.Number,
  UINT64: Schema.BigInt,
  INT8: Schema.Number,
  INT16: Schema.Number,
  INT32: Schema.Number,
  INT64: Schema.BigInt,
  FP16: Schema.Number,
  FP32: Schema.Number,
  FP64: Schema.Number,
}

/** One element, shape [1]. Integers outside the datatype's range, or with a fraction, are refused, never wrapped. */
export const scalar = <D extends ScalarDataType>(
  datatype: D,
): Schema.Codec<ScalarType<D>, TypedTensor<D, readonly [1]>> =>
  annotated(datatype, [1], { form: "scalar" }).pipe(
    Schema.decodeTo(
      scalarSchemas[datatype],
      SchemaTransformation.transformEffect({
        decode: (tensor: TypedTensor<D, readonly [1]>) => {
          const [value] = tensor.data
          return Effect.succeed((datatype === "BOOL" ? value !== 0 : value) as ScalarType<D>)
        },
        encode: (value: ScalarType<D>, options) => {
          const buffer = new ArrayBuffer(byteWidth(datatype) ?? 1)
          const data: ElementArrays[D] = view(datatype, buffer, 0, 1)
          Reflect.set(data, 0, typeof value === "boolean" ? Number(value) : value)
          const written: unknown = Reflect.get(data, 0)
          const exact = datatype === "BOOL" || datatype.startsWith("FP") || written === value
          return exact
            ? Effect.succeed(make(datatype, [1], data))
            : Effect.fail(invalid(`expected a value that ${datatype} can hold`, value, options))
        },
      }),
    ),
  )

/** INT32 [1] on the wire, an index into the labels; one of the labels in code. */
export const labels = <const L extends ReadonlyArray<string>>(
  names: L,
): Schema.Codec<L[number], TypedTensor<"INT32", readonly [1]>> =>
  annotated("INT32", [1], { labels: names }).pipe(
    Schema.decodeTo(
      Schema.Literals(names),
      SchemaTransformation.transformEffect({
        decode: ({ data: [index = -1] }, options) => {
          const label: L[number] | undefined = names[index]
          return label === undefined
            ? Effect.fail(invalid(`expected an index of ${names.length} labels`, index, options))
            : Effect.succeed(label)
        },
        encode: (label) => Effect.succeed(make("INT32", [1], Int32Array.of(names.indexOf(label)))),
      }),
    ),
  )

/**
 * The field of a spec that only the running program knows, from a file or from another server: it shows the tensor
 * itself.
 */
export const fromSpec = ({ datatype, dims, labels, optional: isOptional }: Omit<TensorSpec, "name">): Field => {
  const field = annotated(datatype, dims, labels === undefined ? {} : { labels })
  return isOptional ? Schema.optionalKey(field) : field
}

/** A field that callers may leave out, and that handlers have in any case. */
export interface WithDefault<F extends Field> extends Schema.BottomLazy<
  F["ast"],
  WithDefault<F>,
  F["~type.parameters"],
  F["~type.mutability"],
  "required",
  "no-default",
  F["~encoded.mutability"],
  "optional"
> {
  readonly Type: F["Type"]
  readonly Encoded: F["Encoded"]
  readonly DecodingServices: never
  readonly EncodingServices: never
  readonly "~type.make.in": F["~type.make.in"]
  readonly "~type.make": F["~type.make"]
  readonly Iso: F["Iso"]
  readonly schema: F
}

/** The value of a field; of one that shows its tensor also one element, which then is every element. */
type DefaultOf<F extends Field> =
  F extends Plain<infer D, infer S, infer N>
    ? [N] extends [never]
      ? TypedTensor<D, S> | (number extends S[number] ? never : Element<D>)
      : Element<D>
    : F["Type"]

/**
 * An input that a request may omit. Its key is optional in code. With a default, handlers receive the default instead,
 * in each row.
 *
 * ```ts
 * inputs: {
 *   TEXT: Tensor.utf8(),
 *   LANGUAGE: Tensor.optional(Tensor.utf8(), { default: "en" }),
 *   WEIGHTS: Tensor.optional(Tensor.FP32(16), { default: 1 }),
 * }
 * ```
 *
 * For symbolic dims the default is one element; their extents are those of the request's other inputs.
 * @throws TypeError if the default does not match the field
 */
export const optional: {
  <F extends Field>(field: F): Schema.optionalKey<F>
  <F extends Field>(field: F, options: { readonly default: NoInfer<DefaultOf<F>> }): WithDefault<F>
} = (field: Field, options?: { readonly default: unknown }): never => {
  const marked =
    options === undefined
      ? field
      : Schema.annotate({ tensorDefault: defaultTensor(field, options.default) })(field as Field & Schema.Top)
  return Schema.optionalKey(marked) as never
}

const defaultTensor = (field: Field, value: unknown): DefaultTensor => {
  const annotation = annotationOf(field.ast)
  if (annotation === undefined) throw new TypeError("Only a field that encodes to a tensor can have a default.")
  const { datatype, dims } = annotation
  const refuse = (text: string) => new TypeError(`The default of an input ${print(datatype, dims)} ${text}.`)
  if (isPlain(field) && !(value instanceof TypedTensor)) {
    const element = isElement(value) ? elementBytes(datatype, value) : undefined
    if (element === undefined) throw refuse(`is neither a tensor nor an element of it: ${String(value)}`)
    if (dims.includes(-1)) throw refuse("must be a tensor, because the number of elements is unknown")
    return { element }
  }
  if (dims.some((dim) => typeof dim === "string"))
    throw refuse("must be one element, because the dimensions depend on other inputs")
  const codec: Schema.Codec<unknown, unknown> = field as Field & Schema.Codec<unknown, unknown>
  const row = Schema.encodeUnknownSync(codec)(value)
  if (!(row instanceof TypedTensor) || row.datatype !== datatype || !matches(dims, row.shape)) {
    throw refuse("has another datatype or shape")
  }
  return { row }
}

const isElement = (value: unknown): value is Element<DataType> =>
  ["number", "bigint", "boolean", "string"].includes(typeof value)

/** The spec of a field, from the annotation at the encoded end of its Schema. */
export const spec = (name: string, field: Field): TensorSpec => {
  const annotation = annotationOf(field.ast)
  if (annotation === undefined) {
    throw new TypeError(`Field ${JSON.stringify(name)} does not encode to a tensor: build it from Tensor.* fields.`)
  }
  const preset = field.ast.annotations?.["tensorDefault"]
  const example = annotatedExample(name, field, annotation)
  return {
    name,
    ...annotation,
    ...(example === undefined ? {} : { example: () => example }),
    optional: SchemaAST.isOptional(field.ast),
    ...(preset === undefined ? {} : { default: preset as DefaultTensor }),
  }
}

/** Bytes of the first of a Schema's `examples`, for a field of BYTES [1]. */
const annotatedExample = (
  name: string,
  field: Field,
  { datatype, dims: [extent, ...others] }: TensorAnnotation,
): Uint8Array | undefined => {
  const examples: unknown = SchemaAST.resolve(field.ast)?.["examples"]
  if (datatype !== "BYTES" || extent !== 1 || others.length > 0) return undefined
  if (!Array.isArray(examples) || examples.length === 0) return undefined
  const codec: Schema.Codec<unknown, unknown> = field as Field & Schema.Codec<unknown, unknown>
  try {
    const encoded = Schema.encodeUnknownSync(codec)(examples[0])
    return encoded instanceof TypedTensor ? (encoded as TypedTensor<"BYTES">).data[0] : undefined
  } catch (error) {
    throw new TypeError(`The example of field ${JSON.stringify(name)} does not fit it: ${errorMessage(error)}.`, {
      cause: error,
    })
  }
}

/** Whether the field is a plain tensor, which needs no Schema to encode and decode. */
export const isPlain = (field: Field): boolean =>
  field.ast.annotations?.["tensor"] !== undefined && field.ast.encoding === undefined && field.ast.checks === undefined

const annotationOf = (ast: SchemaAST.AST): TensorAnnotation | undefined => {
  const annotation = SchemaAST.toEncoded(ast).annotations?.["tensor"]
  return annotation as TensorAnnotation | undefined
}

const invalid = (message: string, actual: unknown, options: SchemaAST.ParseOptions): SchemaIssue.Issue =>
  new SchemaIssue.InvalidValue({ message }, actual, options)
