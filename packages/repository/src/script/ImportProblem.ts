/** What importing a module failed with, in one line, for whoever wrote it. */

/** With the place in the user's code, where one is known: nothing else of a stack helps them. */
export const text = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const [head = "", frame = ""] = error.stack?.split("\n", 2) ?? []
  const place =
    /^(?:file:\/\/)?(\/.*:\d+)$/.exec(head)?.[1] ?? /^ +at .*?(?:file:\/\/|\()(\/.*:\d+:\d+)/.exec(frame)?.[1]
  // A module that may be imported again has a query behind its path.
  return place === undefined ? error.message : `${error.message} (${place.replace(/\?[^:?]*/, "")})`
}
