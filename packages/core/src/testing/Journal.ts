/** Records the executed batches, by the model whose instance received each. */
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { RunningModel } from "../running/RunningModel.ts"

/** A batch that an instance was given. */
export interface Execution {
  readonly rows: number
  readonly requests: number
}

/** Any class that `Model.Service` makes. */
export interface AnyModel {
  readonly definition: Pick<Definition<Fields, Fields>, "name" | "version">
}

type Name = AnyModel["definition"]

export class Journal {
  readonly #executions = new Map<string, Array<Execution>>()

  /** From now on. */
  watch(model: RunningModel): void {
    const executions = this.#executions.get(print(model.description)) ?? []
    this.#executions.set(print(model.description), executions)
    model.description.statistics.observers.add({
      executing: (rows, requests) => void executions.push({ rows, requests }),
    })
  }

  /** The first one first; undefined for a model that is not watched. */
  find(model: Name): ReadonlyArray<Execution> | undefined {
    return this.#executions.get(print(model))?.slice()
  }

  /** @throws TypeError for a model that is not watched */
  of(model: Name): ReadonlyArray<Execution> {
    const found = this.find(model)
    if (found !== undefined) return found
    const watched = [...this.#executions.keys()].join(", ")
    throw new TypeError(`No ${print(model)} runs here, but ${watched}.`)
  }
}

const print = ({ name, version }: Name): string => `model '${name}' version ${version}`
