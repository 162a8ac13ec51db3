/**
 * Fuzzing of the generate extension: flat objects that are nearly right, to models that answer once, with and without a
 * stream around the answer. What each deserves, GenerateOracle.ts says.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { elementOf } from "../ResponseComparison.ts"
import { Connections } from "../Connections.ts"
import { bytesOf } from "../Elements.ts"
import type { HttpReply } from "../HttpConnection.ts"
import { encode } from "../HttpEncoding.ts"
import { type InferRequest, possible, type Tensor } from "../InferRequest.ts"
import { parse as parseAnswer } from "../JsonText.ts"
import { mutateBytes, mutateTree } from "./ByteMutation.ts"
import { printed } from "./AttemptResult.ts"
import { outputsOf } from "./GenerateOracle.ts"
import { type JsonTree, parse, print } from "./JsonTree.ts"
import { Random } from "./Random.ts"
import { count, first, seed } from "./settings.ts"
import { validRequest } from "./ValidRequest.ts"
import { Refusal } from "./Verdict.ts"

const some = Math.ceil(count / 5)

const width = 64

/** A request as a flat object; undefined where JSON has no form for it. */
const flatOf = (random: Random, request: InferRequest): JsonTree | undefined => {
  if (!possible(request).includes("HTTP JSON")) return undefined
  const encoding = random.pick(["HTTP JSON", "HTTP JSON nested"] as const)
  const document = parse(Buffer.from(encode({ ...request, outputs: [] }, encoding).body ?? ""))
  const members: Array<readonly [string, JsonTree]> = []
  for (const [key, value] of document.kind === "object" ? document.members : []) {
    if (key === "id") members.push([key, value])
    else if (key === "parameters" && value.kind === "object") {
      if (random.chance(0.5)) members.push([key, value])
      else members.push(...value.members)
    } else if (key === "inputs" && value.kind === "array") {
      for (const input of value.elements) {
        const of = new Map(input.kind === "object" ? input.members : [])
        const [name, data] = [of.get("name"), of.get("data")]
        if (name?.kind === "string" && data !== undefined) members.push([name.bytes, data])
      }
    }
  }
  return { kind: "object", members }
}

interface Attempt {
  readonly path: string
  readonly body: Uint8Array
  readonly outputs: ReadonlyArray<Tensor> | undefined
}

const attempt = (index: number): Attempt => {
  const random = Random.of(seed + 1, index)
  let request = validRequest(random)
  let tree = flatOf(random, request)
  while (tree === undefined) {
    request = validRequest(random)
    tree = flatOf(random, request)
  }
  if (random.chance(0.5)) tree = mutateTree(random, tree)
  const body = random.chance(0.25) ? mutateBytes(random, print(tree)) : print(tree)
  const path = `/v2/models/${request.model}/${random.chance(0.5) ? "generate" : "generate_stream"}`
  return { path, body, outputs: verdict(body, request.model) }
}

const verdict = (body: Uint8Array, model: string): ReadonlyArray<Tensor> | undefined => {
  try {
    return outputsOf(parse(body), model, "")
  } catch (error) {
    if (error instanceof Refusal || error instanceof SyntaxError) return undefined
    throw error
  }
}

const problemOf = ({ outputs, path }: Attempt, { status, headers, body }: HttpReply): string | undefined => {
  const text = body.toString("latin1")
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true
  if (isStream && !(path.endsWith("_stream") && text.startsWith("data: {") && text.endsWith("}\n\n")))
    return `no stream: ${text}`
  const document = parseAnswer(isStream ? text.slice("data: ".length) : text)
  if (typeof document !== "object" || document === null) return `no object: ${text}`
  if ("error" in document) {
    if (status === 200) return `an error with status 200: ${text}`
    if (status === 500) return `a failure of the server: ${text}`
    return outputs === undefined ? undefined : `refused what is valid: ${status} ${text}`
  }
  if (outputs === undefined) return `answered what is not valid: ${text}`
  const members = new Map<string, unknown>(Object.entries(document))
  const actual = outputs.map(({ name, datatype }) => {
    const value = members.get(name)
    const elements = (Array.isArray(value) ? value : [value]).map((element: unknown) => elementOf(element, datatype))
    return printed({ name, datatype, shape: [], elements })
  })
  const expected = outputs.map((output) => printed({ ...output, shape: [], elements: [], bytes: bytesOf(output) }))
  return actual.join() === expected.join() ? undefined : `answered ${actual.join()}, expected ${expected.join()}`
}

layer(Connections.layer, { excludeTestServices: true })("fuzzing of generate", (it) => {
  it.effect(
    `${some} flat objects that are nearly right, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const connections = yield* Connections
        const run = async (index: number): Promise<string | undefined> => {
          const one = attempt(index)
          const connection = await connections.http("normal")
          const response = await connection.request({ path: one.path, body: one.body })
          const problem = problemOf(one, response)
          return problem && `${index}: ${one.path} ${Buffer.from(one.body).toString()}: ${problem}`
        }
        const problems = yield* Effect.promise(async () => {
          const found: Array<string> = []
          for (let start = first; start < first + some; start += width) {
            const length = Math.min(width, first + some - start)
            const all = await Promise.all(Array.from({ length }, (_, offset) => run(start + offset)))
            found.push(...all.flatMap((problem) => problem ?? []))
          }
          return found
        })
        assert.deepStrictEqual(problems.slice(0, 5), [])
      }),
    120_000,
  )
})
