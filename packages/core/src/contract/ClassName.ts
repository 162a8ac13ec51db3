/** Names of the classes and constants of a contract file: `add_sub` becomes `AddSub`. */

/** Names that a contract file imports, and of the language that it uses. */
const taken = new Set(
  "Model,Tensor,Schema,Effect,ReadonlyArray,Infinity,NaN,TextEncoder,Uint8Array,Uint16Array,Uint32Array,BigUint64Array,Int8Array,Int16Array,Int32Array,BigInt64Array,Float16Array,Float32Array,Float64Array".split(
    ",",
  ),
)

/** Gives each name once. */
export class ClassNames {
  readonly #used = new Set<string>()
  /** The next number behind a name that is used. */
  readonly #numbers = new Map<string, number>()

  /** The name for what is called `name`; `suffix` stands behind it where the name belongs to something else. */
  unique(name: string, suffix: string): string {
    const base = className(name, suffix)
    let unique = base
    for (let number = this.#numbers.get(base) ?? 2; this.#used.has(unique); number++) {
      unique = `${base}${number}`
      this.#numbers.set(base, number + 1)
    }
    this.#used.add(unique)
    return unique
  }
}

const className = (name: string, suffix: string): string => {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? []
  const joined = words.map(([first = "", ...rest]) => first.toUpperCase() + rest.join("")).join("")
  const isName = /^\p{ID_Start}\p{ID_Continue}*$/u.test(joined)
  const identifier = isName ? joined : `${suffix}${joined.replaceAll(/\P{ID_Continue}/gu, "")}`
  return taken.has(identifier) ? `${identifier}${suffix}` : identifier
}
