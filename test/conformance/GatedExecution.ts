/**
 * Shared state of the models that a test blocks to inspect their queue: the ids of the requests of each execution, and
 * the gate of the request `hold`. Scripts of a repository cannot be imported by tests, so they find this object by its
 * name in the process.
 */
class GatedExecution {
  /** The ids of the requests of each execution that has begun. */
  executions: Array<ReadonlyArray<string>> = []
  #open = () => {}

  get ran(): ReadonlyArray<string> {
    return this.executions.flat()
  }

  /** An execution of these requests, which waits where one of them is to be held. */
  async execute(ids: ReadonlyArray<string>): Promise<void> {
    this.executions.push(ids)
    if (ids.includes("hold")) await new Promise<void>((resolve) => (this.#open = resolve))
  }

  /** Ends the execution that waits. */
  open(): void {
    this.#open()
  }
}

const name = "nereid.conformance.held"

export const gatedExecution = new GatedExecution()

Object.assign(globalThis, { [Symbol.for(name)]: gatedExecution })

/** A script that answers X with X once it may. Requests with this id are to be held. */
export const holding = (hold = "hold") => `
  const held = globalThis[Symbol.for("${name}")]
  export default {
    execute: async (requests) => {
      await held.execute(requests.map(({ id }) => (id === "${hold}" ? "hold" : id)))
      return requests.map(({ inputs: { X } }) => ({ X }))
    },
  }`
