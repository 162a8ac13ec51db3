/** Names of the classes that declare models: `add_sub` becomes `AddSub`. */

/** Names that a contract file imports. */
const taken = ["Model", "Tensor"]

/** A class for each model, no two of the same name. */
export const classNames = (models: ReadonlyArray<string>): ReadonlyArray<string> => {
  const used = new Set<string>()
  return models.map((model) => {
    const name = className(model)
    let unique = name
    for (let number = 2; used.has(unique); number++) unique = `${name}${number}`
    used.add(unique)
    return unique
  })
}

const className = (model: string): string => {
  const words = model.match(/[\p{L}\p{N}]+/gu) ?? []
  const name = words.map(([first = "", ...rest]) => first.toUpperCase() + rest.join("")).join("")
  const isName = /^\p{ID_Start}\p{ID_Continue}*$/u.test(name)
  const identifier = isName ? name : `Model${name.replaceAll(/\P{ID_Continue}/gu, "")}`
  return taken.includes(identifier) ? `${identifier}Model` : identifier
}
