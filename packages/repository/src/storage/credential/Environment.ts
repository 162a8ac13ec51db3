/** Variables of a process that choose credentials and endpoints. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Variables with the names of others, where an entry of a file replaces them. */
export const replaced = (environment: Environment, removed: RegExp, added: Environment): Environment => ({
  ...Object.fromEntries(Object.entries(environment).filter(([name]) => !removed.test(name))),
  ...added,
})

export const isTrue = (value: string | undefined): boolean => value?.toLowerCase() === "true"
