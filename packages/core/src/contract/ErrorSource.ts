/** Declared errors as classes of a contract file. Models that declare the same error share its class. */
import type { ClassNames } from "./ClassName.ts"
import type { ContractError } from "./Contract.ts"
import type { JsonSource } from "./JsonSource.ts"
import { print, quoted } from "./SourceText.ts"

export class ErrorSource {
  readonly statements: Array<string> = []
  readonly #names: ClassNames
  readonly #json: JsonSource
  readonly #known = new Map<string, string>()

  constructor(names: ClassNames, json: JsonSource) {
    this.#names = names
    this.#json = json
  }

  /** The name of the error's class. */
  name({ tag, json }: ContractError): string {
    const key = JSON.stringify([tag, json.type, [...json.definitions]])
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const name = this.#names.unique(tag, "Error")
    this.#known.set(key, name)
    const fields = this.#json.fields(json, "_tag")
    this.statements.push(
      print(fields, `export class ${name} extends Schema.TaggedError<${name}>()(${quoted(tag)}, `, ") {}", 0),
    )
    return name
  }
}
