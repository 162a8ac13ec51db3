/**
 * A part of a shared memory region that replaces a tensor's bytes: an input is read from it, an output written to it.
 * The server checks whether the region exists.
 */
import { Result } from "effect"
import { InvalidRequest } from "../error/InferenceError.ts"
import type { Parameters } from "../request/Request.ts"

export interface RegionReference {
  /** Of the region, as its caller registered it. */
  readonly name: string
  /** In bytes; of an output in a response, as many as it has. */
  readonly byteSize: number
  /** Bytes from the start of the region. */
  readonly offset: number
  /** Why its end is not a number of 64 bits; undefined if it is one. */
  readonly overflow?: string | undefined
}

const maxEnd = 2n ** 64n - 1n

/** The parameters of a tensor that make a reference. */
export const parameterNames = {
  name: "shared_memory_region",
  byteSize: "shared_memory_byte_size",
  offset: "shared_memory_offset",
} as const

/** The reference in these parameters of a tensor; undefined if it has none of them. */
export const make = (
  name: string | undefined,
  byteSize: bigint | undefined,
  offset: bigint | undefined,
): Result.Result<RegionReference | undefined, InvalidRequest> => {
  if (name === undefined) {
    const lonely =
      offset !== undefined ? parameterNames.offset : byteSize !== undefined ? parameterNames.byteSize : undefined
    return lonely === undefined
      ? Result.succeed(undefined)
      : refuse(`'${lonely}' can not be specified without '${parameterNames.name}' parameter`)
  }
  if (byteSize === undefined) {
    return refuse(`'${parameterNames.byteSize}' must be specified along with '${parameterNames.name}' parameter`)
  }
  const reference = { name, byteSize: Number(byteSize), offset: Number(offset ?? 0n) }
  return Result.succeed(
    byteSize + (offset ?? 0n) <= maxEnd ? reference : { ...reference, overflow: overflow(name, byteSize, offset) },
  )
}

/** The parameters that say it again, of an output in a response. */
export const parameters = ({ name, byteSize, offset }: RegionReference): Parameters => ({
  [parameterNames.name]: name,
  [parameterNames.byteSize]: BigInt(byteSize),
  ...(offset === 0 ? {} : { [parameterNames.offset]: BigInt(offset) }),
})

/** Why an output cannot be in a region and also be sent in another form. */
export const conflict = (other: "classification" | "binary_data"): InvalidRequest =>
  new InvalidRequest({ message: `Output can't set both '${parameterNames.name}' and '${other}'` })

const overflow = (name: string, byteSize: bigint, offset = 0n): string =>
  `Integer overflow detected: byte_size (${byteSize}) + offset (${offset}) exceeds maximum value (${maxEnd}) for region '${name}'`

const refuse = (message: string) => Result.fail(new InvalidRequest({ message }))
