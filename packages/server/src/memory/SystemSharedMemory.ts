/**
 * Regions of POSIX shared memory, read and written through their files in /dev/shm on Linux. Those files are the same
 * pages that other processes map. No mapping is needed here, and a region that shrinks cannot crash the process.
 *
 * The calls are synchronous on purpose. No disk is involved, each call is one memory copy, and a hand-off to another
 * thread costs more than copying most tensors.
 */
import { existsSync } from "node:fs"
import { Result } from "effect"
import {
  type InferenceError,
  InvalidRequest,
  QueueFull,
  RegionExists,
  RegionFailed,
  RegionNotFound,
  Unsupported,
} from "@nereid/core/Errors"
import type { SharedBytes } from "@nereid/core/internal/tensor/SharedBytes"
import type { RegionReference } from "@nereid/core/internal/wire/RegionReference"
import type { WireRequest, WireResponse, WireTensor } from "@nereid/core/internal/wire/WireRequest"
import { notFound, type Region, type SharedMemory } from "./SharedMemory.ts"
import { objectName, SharedMemoryObject } from "./SharedMemoryObject.ts"

export interface SystemSharedMemoryOptions {
  /** Directory of the shared memory files. Default /dev/shm. */
  readonly directory?: string
  /** Maximum number of regions; each keeps a file open. Default 1024. */
  readonly maxRegions?: number
  /** Bytes of inputs that requests hold together until their answers. Default 1 GiB. */
  readonly maxInputSize?: number
}

/** Characters of a name or a key, which are kept as long as the region is. */
const maxNameLength = 1024

/** The prefix of objects that servers of this protocol make for themselves. */
const reservedPrefix = "triton_python_backend_shm_region_"

interface OpenRegion extends Region {
  readonly object: SharedMemoryObject
  /** Requests that use it. */
  users: number
  /** To be closed with its last user. Requests that begin until then may use it, as in Triton. */
  leaving: boolean
}

/** Keeps regions open until they are unregistered, or until it is closed. */
export class SystemSharedMemory implements SharedMemory {
  readonly refusal = undefined
  readonly #directory: string
  readonly #maxRegions: number
  readonly #maxInputSize: number
  readonly #regions = new Map<string, OpenRegion>()
  /** Bytes of inputs in use. */
  #loanedBytes = 0

  constructor({ directory = "/dev/shm", maxRegions = 1024, maxInputSize = 2 ** 30 }: SystemSharedMemoryOptions = {}) {
    this.#directory = directory
    this.#maxRegions = maxRegions
    this.#maxInputSize = maxInputSize
  }

  readonly status: SharedMemory["status"] = (name) => {
    if (name === "") return Result.succeed([...this.#regions.values()])
    const region = this.#regions.get(name)
    return region === undefined ? notFound(name) : Result.succeed([region])
  }

  readonly register: SharedMemory["register"] = (region) => {
    const { name, key, offset, byteSize } = region
    if (name === "") return invalid("'region name' is necessary to register system shared memory region")
    if (name.length > maxNameLength || key.length > maxNameLength) {
      const lengths = `its name has ${name.length} characters and its key ${key.length}, at most ${maxNameLength} are allowed`
      return invalid(`failed to register shared memory region '${name.slice(0, 40)}': ${lengths}`)
    }
    if (objectName(key) === "") {
      return invalid(`failed to register shared memory region '${name}': invalid shm key '${key}'`)
    }
    if (name.startsWith(reservedPrefix) || objectName(key).startsWith(reservedPrefix)) {
      const reason = `as the key contains the reserved prefix '${reservedPrefix}'`
      return invalid(`cannot register shared memory region '${name}' with key '${key}' ${reason}`)
    }
    if (this.#regions.has(name)) {
      return Result.fail(new RegionExists({ message: `shared memory region '${name}' already in manager` }))
    }
    if (this.#regions.size >= this.#maxRegions) {
      const limit = `${this.#maxRegions} regions are registered, the maximum allowed`
      return invalid(`failed to register shared memory region '${name}': ${limit}`)
    }
    const opened = this.#open(key)
    if (Result.isFailure(opened)) return Result.fail(opened.failure)
    const object = opened.success
    if (byteSize === 0 || offset + byteSize > object.size()) {
      object.close()
      return invalid(`failed to register shared memory region '${name}': invalid args`)
    }
    this.#regions.set(name, { name, key, offset, byteSize, object, users: 0, leaving: false })
    return Result.void
  }

  readonly unregister: SharedMemory["unregister"] = (name) => {
    for (const region of name === "" ? [...this.#regions.values()] : [this.#regions.get(name)]) {
      if (region === undefined) continue
      region.leaving = true
      this.#closeIfUnused(region)
    }
    return Result.void
  }

  readonly borrow: SharedMemory["borrow"] = (request, isShared = false) => {
    const used = new Set<OpenRegion>()
    let loaned = 0
    const release = () => {
      this.#loanedBytes -= loaned
      loaned = 0
      for (const region of used) {
        region.users -= 1
        this.#closeIfUnused(region)
      }
      used.clear()
    }
    /** Finds all named regions before it reads the first. */
    const regions = new Map<RegionReference, OpenRegion>()
    for (const { region: reference } of [...request.inputs, ...request.outputs]) {
      if (reference === undefined) continue
      const region = this.#regionOf(reference)
      if (Result.isFailure(region)) {
        release()
        return Result.fail(region.failure)
      }
      regions.set(reference, region.success)
      if (!used.has(region.success)) region.success.users += 1
      used.add(region.success)
    }
    const size = request.inputs.reduce((sum, { region }) => sum + (region?.byteSize ?? 0), 0)
    const tooMuch = this.#tooMuch(size)
    if (tooMuch !== undefined) {
      release()
      return Result.fail(tooMuch)
    }
    loaned = size
    this.#loanedBytes += size
    const inputs: Array<WireTensor> = []
    for (const input of request.inputs) {
      const region = input.region && regions.get(input.region)
      if (input.region === undefined || region === undefined) {
        inputs.push(input)
        continue
      }
      const shared = isShared && isMapped(input.datatype, input.region) && this.#shared(region, input.region)
      if (shared) {
        inputs.push({ name: input.name, datatype: input.datatype, shape: input.shape, bytes: noBytes, shared })
        continue
      }
      const bytes = region.object.read(region.offset + input.region.offset, input.region.byteSize)
      if (Result.isFailure(bytes)) {
        release()
        return failed(
          `Unable to read input '${input.name}' from shared memory region: '${region.name}', ${bytes.failure}`,
        )
      }
      inputs.push({ name: input.name, datatype: input.datatype, shape: input.shape, bytes: bytes.success })
    }
    return Result.succeed({
      request: { ...request, inputs },
      targets: isShared ? this.#targets(request, regions) : undefined,
      write: (response) => writeOutputs(request, regions, response),
      release,
    })
  }

  /** Memory of a region for another process; undefined if the object has become too short for it. */
  #shared(region: OpenRegion, { offset, byteSize }: RegionReference): SharedBytes | undefined {
    const start = region.offset + offset
    if (region.object.size() < start + byteSize) return undefined
    return {
      ...region.object.reopened,
      offset: start,
      length: byteSize,
      read: () => Result.getOrThrowWith(region.object.read(start, byteSize), (problem) => new Error(problem)),
      hold: () => {
        region.users += 1
        return () => {
          region.users -= 1
          this.#closeIfUnused(region)
        }
      },
    }
  }

  #targets(
    { outputs }: WireRequest,
    regions: ReadonlyMap<RegionReference, OpenRegion>,
  ): ReadonlyMap<string, SharedBytes> | undefined {
    const targets = new Map<string, SharedBytes>()
    for (const { name, region: reference } of outputs) {
      const region = reference && regions.get(reference)
      if (reference === undefined || region === undefined || reference.byteSize < minMapped) continue
      const shared = this.#shared(region, reference)
      if (shared !== undefined) targets.set(name, shared)
    }
    return targets.size === 0 ? undefined : targets
  }

  /** Closes everything, in use or not. */
  close(): void {
    for (const { object } of this.#regions.values()) object.close()
    this.#regions.clear()
  }

  #open(key: string): Result.Result<SharedMemoryObject, InferenceError> {
    const object = SharedMemoryObject.open(this.#directory, key)
    if (object !== undefined) return Result.succeed(object)
    if (existsSync(this.#directory)) return failed(`Unable to open shared memory region: '${key}'`)
    const message = `shared memory is not supported on this server's system (${process.platform}), which has no ${this.#directory}`
    return Result.fail(new Unsupported({ message }))
  }

  #regionOf({ name, offset, byteSize, overflow }: RegionReference): Result.Result<OpenRegion, InferenceError> {
    const region = this.#regions.get(name)
    if (region === undefined) {
      return Result.fail(new RegionNotFound({ message: `Unable to find shared memory region: '${name}'` }))
    }
    if (offset >= region.byteSize) return invalid(`Invalid offset for shared memory region: '${name}'`)
    if (overflow !== undefined) return invalid(overflow)
    if (offset + byteSize > region.byteSize) {
      return invalid(`Invalid offset + byte size for shared memory region: '${name}'`)
    }
    return Result.succeed(region)
  }

  #tooMuch(size: number): InferenceError | undefined {
    if (this.#loanedBytes + size <= this.#maxInputSize) return undefined
    const limit = `at most ${this.#maxInputSize} are allowed at one time`
    return size > this.#maxInputSize
      ? new InvalidRequest({ message: `the inputs in shared memory have ${size} bytes, ${limit}` })
      : new QueueFull({ message: `requests hold ${this.#loanedBytes} bytes of inputs from shared memory, ${limit}` })
  }

  #closeIfUnused(region: OpenRegion): void {
    if (!region.leaving || region.users > 0 || this.#regions.get(region.name) !== region) return
    this.#regions.delete(region.name)
    region.object.close()
  }
}

const writeOutputs = (
  request: WireRequest,
  regions: ReadonlyMap<RegionReference, OpenRegion>,
  response: WireResponse,
): Result.Result<WireResponse, InferenceError> => {
  const outputs: Array<WireTensor> = []
  for (const output of response.outputs) {
    const { name, datatype, shape, bytes, shared } = output
    const reference = request.outputs.find((other) => other.name === name)?.region
    const region = reference && regions.get(reference)
    if (reference === undefined || region === undefined) {
      outputs.push(output)
      continue
    }
    if (shared !== undefined) {
      // The model has written it.
      outputs.push({ name, datatype, shape, bytes: noBytes, region: { ...reference, byteSize: shared.length } })
      continue
    }
    if (bytes.length > reference.byteSize) {
      const problem = `should be at least ${bytes.length} bytes to hold the results`
      return failed(
        `shared memory size specified with the request for output '${name}' (${reference.byteSize} bytes) ${problem}`,
      )
    }
    const written = region.object.write(region.offset + reference.offset, bytes)
    if (Result.isFailure(written)) {
      return failed(`Unable to write output '${name}' to shared memory region: '${region.name}', ${written.failure}`)
    }
    outputs.push({ name, datatype, shape, bytes: noBytes, region: { ...reference, byteSize: bytes.length } })
  }
  return Result.succeed({ ...response, outputs })
}

const noBytes = new Uint8Array()

/** Bytes from which a tensor is mapped: a smaller one costs less when it is copied. */
const minMapped = 16 * 1024

/** Elements of BYTES must be checked, so they are read. */
const isMapped = (datatype: string, { byteSize }: RegionReference): boolean =>
  datatype !== "BYTES" && byteSize >= minMapped

const failed = (message: string) => Result.fail(new RegionFailed({ message }))

const invalid = (message: string) => Result.fail(new InvalidRequest({ message }))
