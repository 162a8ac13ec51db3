/**
 * Executions of scripts that a test ends one by one, by the names of their models. Tests cannot import the scripts of a
 * repository, so scripts find this object by its name in the process.
 */
export class BlockedExecutions {
  /** Executions that have begun, such as "m", or "m of 3" with 3 requests. */
  begun: Array<string> = []
  #ends: Array<readonly [model: string, end: (error?: Error) => void]> = []

  readonly begin = (model: string, requests: number): Promise<void> => {
    this.begun.push(requests === 1 ? model : `${model} of ${requests}`)
    return new Promise((resolve, reject) => {
      this.#ends.push([model, (error) => (error === undefined ? resolve() : reject(error))])
    })
  }

  /** The models of the executions that go on, the oldest first. */
  get running(): ReadonlyArray<string> {
    return this.#ends.map(([model]) => model)
  }

  /** Ends the oldest execution of the model, or of any; with an error, it fails. */
  end(model = this.running[0], error?: Error): void {
    const index = this.#ends.findIndex(([name]) => name === model)
    const ended = this.#ends[index]
    if (ended === undefined) throw new Error(`${model} does not execute`)
    this.#ends.splice(index, 1)
    ended[1](error)
  }

  /** Ends all that go on. */
  reset(): void {
    while (this.running.length > 0) this.end()
    this.begun = []
  }
}

const name = "nereid.conformance.blocked"

export const blockedExecutions = new BlockedExecutions()

Object.assign(globalThis, { [Symbol.for(name)]: blockedExecutions })

const begin = (model: string, requests: string) =>
  `await globalThis[Symbol.for("${name}")].begin("${model}", ${requests})`

/** A script that answers X with Y, equal to X, once it may. A warm-up does not block. */
export const blocking = (model: string): string => `export default {
  execute: async (requests) => {
    if (requests[0].id !== "warm-up") ${begin(model, "requests.length")}
    return requests.map(({ inputs: { X } }) => ({ Y: X }))
  },
}`

/** A script of sequences that answers INPUT with OUTPUT once it may. Its executions are "<model> <ids>". */
export const blockingSequences = (model: string): string => `export default {
  execute: async (requests) => {
    const ids = requests.flatMap(({ sequence }) => (sequence.isReady ? [sequence.id] : []))
    await globalThis[Symbol.for("${name}")].begin("${model} " + ids.join("+"), 1)
    return requests.map(({ inputs: { INPUT } }) => ({ OUTPUT: INPUT }))
  },
}`

/** An iterative script: INPUT n has n responses, each of a separate step that the test ends. */
export const blockingSteps = (model: string): string => `
  import { ModelScript } from "@nereid/repository"
  const left = new Map()
  export default ModelScript.stream({
    execute: async function* ({ inputs: { INPUT }, sequence }) {
      ${begin(model, "1")}
      const next = (sequence.isStart ? INPUT.data[0] : left.get(sequence.id)) - 1
      left.set(sequence.id, next)
      yield { OUTPUT: INPUT }
      if (next > 0) yield ModelScript.reschedule
    },
  })`

/** A decoupled script with two responses of X: before and after its execution may end. */
export const blockingBetween = (model: string): string => `export default {
  execute: async function* ({ inputs: { X } }) {
    yield { Y: X }
    ${begin(model, "1")}
    yield { Y: X }
  },
}`

/** A script that answers X with Y, equal to X, at once. */
export const echo = "export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })) }"
