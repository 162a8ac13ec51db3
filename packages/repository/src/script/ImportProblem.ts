/** Error messages of a failed import, in one line. */

/** Returns the message, with the position in the user's code if known. */
export const text = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const [head = "", frame = ""] = error.stack?.split("\n", 2) ?? []
  const place =
    /^(?:file:\/\/)?(\/.*:\d+)$/.exec(head)?.[1] ?? /^ +at .*?(?:file:\/\/|\()(\/.*:\d+:\d+)/.exec(frame)?.[1]
  // A module that may be imported again has a query behind its path.
  return place === undefined ? error.message : `${error.message} (${place.replace(/\?[^:?]*/, "")})`
}
