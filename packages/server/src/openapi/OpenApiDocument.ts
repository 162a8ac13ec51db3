/**
 * The OpenAPI document of the HTTP port as text: every route of the protocol, of each served model and of the server's
 * owner. It is made when it is requested after a change of the models, in slices between the turns of the event loop.
 * The part of each model is kept for as long as the model is served.
 */
import { createHash } from "node:crypto"
import { Result } from "effect"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as SlicedWork from "../dispatch/SlicedWork.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import { type Api, apis, type RestrictedApis } from "../gateway/RestrictedApis.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as InferencePaths from "./InferencePaths.ts"
import * as ModelPaths from "./ModelPaths.ts"
import { type OpenApiObject, print, schemeOf } from "./Operation.ts"
import * as ProtocolPaths from "./ProtocolPaths.ts"
import * as ProtocolSchemas from "./ProtocolSchemas.ts"
import * as RoutePaths from "./RoutePaths.ts"
import * as StreamPaths from "./StreamPaths.ts"

/** The document of one state of the models. */
export interface OpenApiDocument {
  readonly bytes: Uint8Array
  /** Entity tag, with its quotes. */
  readonly etag: string
}

export interface OpenApiOptions {
  readonly restrictedApis: RestrictedApis
  readonly routes: ReadonlyArray<RoutePaths.OwnRoute>
  /** Path of the page whose streams the server has, with a slash at its end. */
  readonly page?: string | undefined
}

type Documented = Pick<Gateway, "metadata" | "models" | "model">

/** Size of a model's part, in characters. The general paths alone describe a model with a larger part. */
export const maxPartLength = 1024 * 1024

/** Size of all parts of models, in characters. */
export const maxPartsLength = 16 * 1024 * 1024

/** Time of a slice, in milliseconds. */
const slice = 4

/** Receives a document, or the reason why it cannot be made. */
type Receive = (document: Result.Result<OpenApiDocument, unknown>) => void

/** Returns a function that calls `receive` with the document of the models that are served now. */
export const make = (gateway: Documented, options: OpenApiOptions): ((receive: Receive) => void) => {
  const schemas = ProtocolSchemas.make()
  const parts = new ModelParts(schemas, options.restrictedApis)
  let revision = 0
  let made: { readonly revision: number; readonly document: OpenApiDocument } | undefined
  let making: { readonly revision: number; readonly waiting: Array<Receive> } | undefined
  gateway.models.onChange(() => void (revision += 1))

  return (receive) => {
    if (made?.revision === revision) return receive(Result.succeed(made.document))
    if (making?.revision === revision) return void making.waiting.push(receive)
    const current = { revision, waiting: [receive] }
    making = current
    const end: Receive = (result) => {
      if (making === current) making = undefined
      for (const receive of current.waiting) receive(result)
    }
    SlicedWork.run(
      write(gateway, options, schemas, parts),
      (document) => {
        // A later state of the models may be ready already.
        if (made === undefined || made.revision < current.revision) made = { revision: current.revision, document }
        end(Result.succeed(document))
      },
      (error) => end(Result.fail(error)),
    )
  }
}

/** The text of one model's paths and schemas: members of JSON objects, without the braces. */
interface ModelPart {
  /** Of the paths without a version, and of those with it. */
  readonly unversioned: string
  readonly versioned: string
  readonly schemas: string
}

interface KnownPart {
  /** Undefined for a part that is too large, or that cannot be made. */
  readonly part: ModelPart | undefined
  /** Labels of the outputs, which those of an ensemble may change. */
  readonly labels: ReadonlyArray<ReadonlyArray<string> | undefined>
  /** Of its required sequence, which an ensemble has from its steps. */
  readonly maxIdle: number | undefined
}

class ModelParts {
  readonly #known = new WeakMap<RunningModel, KnownPart>()
  readonly #general: ProtocolSchemas.ProtocolSchemas
  readonly #restrictedApis: RestrictedApis

  constructor(general: ProtocolSchemas.ProtocolSchemas, restrictedApis: RestrictedApis) {
    this.#general = general
    this.#restrictedApis = restrictedApis
  }

  get(running: RunningModel): ModelPart | undefined {
    const labels = running.description.signature.outputs.map(({ labels }) => labels)
    const maxIdle = running.description.requiredSequence?.maxIdle
    const known = this.#known.get(running)
    const isCurrent = known?.maxIdle === maxIdle
    if (isCurrent && known?.labels.every((label, output) => label === labels[output]) === true) return known.part
    const part = this.#make(running)
    this.#known.set(running, { part, labels, maxIdle })
    return part
  }

  #make(running: RunningModel): ModelPart | undefined {
    const { name, version } = running.description
    try {
      const { operations, schemas } = ModelPaths.make(running, this.#general)
      const paths = (named: string | undefined) =>
        members(
          operations.map(([segment, { verb, ...operation }]) => {
            const operationId = ModelPaths.operationId(verb, name, named)
            const post = print({ operationId, ...operation }, this.#restrictedApis)
            return [ModelPaths.pathOf(name, named, segment), { post }]
          }),
        )
      const part = {
        unversioned: paths(undefined),
        versioned: paths(version),
        schemas: members(Object.entries(schemas)),
      }
      return part.unversioned.length + part.versioned.length + part.schemas.length > maxPartLength ? undefined : part
    } catch {
      // Such as a name of a repository that no URL can have.
      return undefined
    }
  }
}

/** Entries as the members of a JSON object. */
const members = (entries: ReadonlyArray<readonly [name: string, value: unknown]>): string =>
  entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")

const joined = (parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(",")

function* write(
  gateway: Documented,
  { restrictedApis, routes, page }: OpenApiOptions,
  general: ProtocolSchemas.ProtocolSchemas,
  parts: ModelParts,
): Generator<undefined, OpenApiDocument> {
  const byName = Map.groupBy(gateway.models.models, ({ description }) => description.name)
  const paths: Array<string> = []
  const schemas: Array<string> = []
  const tags: Array<object> = []
  const omitted = new Set<string>()
  let length = 0
  let until = performance.now() + slice
  for (const [name, versions] of byName) {
    for (const running of versions) {
      const part = parts.get(running)
      const isHighest = Result.getOrUndefined(gateway.model(name, "")) === running
      const texts = [isHighest ? part?.unversioned : "", versions.length > 1 ? part?.versioned : ""]
      const size = joined([part?.schemas ?? "", ...texts.map((text = "") => text)]).length
      if (part === undefined || length + size > maxPartsLength) omitted.add(name)
      else {
        length += size
        paths.push(joined(texts.map((text = "") => text)))
        schemas.push(part.schemas)
      }
      if (performance.now() < until) continue
      yield
      until = performance.now() + slice
    }
    const list = versions.map(({ description }) => description.version).join(", ")
    tags.push({ name: ModelPaths.tagOf(name), description: `Model ${name}, version ${list}` })
  }
  const own = RoutePaths.make(routes, ({ sample: { definition } }) =>
    Result.getOrUndefined(gateway.model(definition.name, definition.version)),
  )
  if (own.operations.length > 0) tags.push({ name: RoutePaths.tag, description: "Routes of this server" })
  const head = {
    openapi: "3.1.0",
    info: { title: gateway.metadata.name, version: gateway.metadata.version, description },
    tags: [...tags, ...apis.map((api) => ({ name: api, description: apiDescriptions[api] }))],
    ...(omitted.size === 0 ? {} : { "x-nereid-omitted-models": [...omitted] }),
  }
  const others = {
    parameters: InferencePaths.parameters,
    responses: ErrorResponses.components(),
    securitySchemes: securitySchemes(restrictedApis),
  }
  const streams = StreamPaths.make(page)
  const all = [own.operations, InferencePaths.make(general), ProtocolPaths.make(general), streams.operations]
  const operations = all.flat()
  const items = [...Map.groupBy(operations, ({ path }) => path)].map(
    ([path, placed]) =>
      [
        path,
        Object.fromEntries(placed.map(({ method, operation }) => [method, print(operation, restrictedApis)])),
      ] as const,
  )
  yield
  const shared = [general.schemas, streams.schemas, own.schemas].map((part) => members(Object.entries(part)))
  const allSchemas = [...shared, ...schemas]
  return yield* encoded([
    `{${members(Object.entries(head))},"paths":{`,
    ...separated([members(items), ...paths]),
    `},"components":{${members(Object.entries(others))},"schemas":{`,
    ...separated(allSchemas),
    "}}}",
  ])
}

/** The texts that are not empty, with a comma before each but the first. */
const separated = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.filter((text) => text !== "").map((text, index) => (index === 0 ? text : `,${text}`))

function* encoded(texts: ReadonlyArray<string>): Generator<undefined, OpenApiDocument> {
  const hash = createHash("sha256")
  const chunks: Array<Uint8Array> = []
  let until = performance.now() + slice
  for (const text of texts) {
    const chunk = Buffer.from(text)
    hash.update(chunk)
    chunks.push(chunk)
    if (performance.now() < until) continue
    yield
    until = performance.now() + slice
  }
  return { bytes: Buffer.concat(chunks), etag: `"${hash.digest("base64url")}"` }
}

const description =
  "The v2 inference protocol over HTTP. Concrete paths have the schemas of each model; the paths with `{model_name}` " +
  "work for every model. GET routes answer HEAD as well."

const apiDescriptions: { readonly [api in Api]: string } = {
  health: "Readiness of the server and its models",
  metadata: "Description of the server and its models",
  inference: "Inference with any model",
  "shared-memory": "Regions of shared memory",
  "model-config": "Configurations of models",
  "model-repository": "States, loads and unloads of models",
  statistics: "Statistics of models",
  trace: "Trace settings",
  logging: "Log settings",
}

/** The headers that restricted APIs require. */
const securitySchemes = (restrictedApis: RestrictedApis): OpenApiObject => {
  const headers = Map.groupBy(
    apis.filter((api) => restrictedApis(api) !== undefined),
    (api) => restrictedApis(api)?.header ?? "",
  )
  return Object.fromEntries(
    [...headers].map(([header, restricted]) => [
      schemeOf(header),
      { type: "apiKey", in: "header", name: header, description: `Secret of the APIs ${restricted.join(", ")}` },
    ]),
  )
}
