/** Instructions of a Containerfile. Not a complete parser: no heredocs, variables or parser directives. */

export interface Instruction {
  /** In capitals, such as COPY. */
  readonly keyword: string
  /** Options, such as --from=packages. */
  readonly options: ReadonlyMap<string, string>
  readonly text: string
}

export interface Stage {
  readonly name: string
  /** An image, or the name of an earlier stage. */
  readonly base: string
  readonly instructions: ReadonlyArray<Instruction>
}

/** A list in the exec form, such as `["serve"]`. The shell form needs a shell, which the images lack. */
export const execForm = ({ keyword, text }: Instruction): ReadonlyArray<string> => {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value
  throw new Error(`${keyword} ${text}: not a list of strings`)
}

const instruction = (line: string): Instruction => {
  const [, keyword = "", flags = "", text = ""] = /^(\w+)\s+((?:--\S+\s+)*)([^]*)$/.exec(line) ?? []
  if (keyword === "") throw new Error(`Not an instruction: ${line}`)
  const options = [...flags.matchAll(/--([\w-]+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value] as const)
  return { keyword: keyword.toUpperCase(), options: new Map(options), text: text.trim() }
}

export const parse = (text: string): ReadonlyArray<Stage> => {
  const lines = text.replaceAll(/^\s*#.*\n/gm, "").replaceAll(/\\\n\s*/g, "")
  const stages: Array<Stage & { readonly instructions: Array<Instruction> }> = []
  for (const line of lines.split("\n").filter((line) => line.trim() !== "")) {
    const next = instruction(line)
    const stage = stages.at(-1)
    if (next.keyword === "FROM") {
      const [, base = "", name = String(stages.length)] = /^(\S+)(?: AS (\S+))?$/i.exec(next.text) ?? []
      stages.push({ name, base, instructions: [] })
    } else if (stage === undefined) throw new Error(`${next.keyword} before FROM`)
    else stage.instructions.push(next)
  }
  return stages
}
