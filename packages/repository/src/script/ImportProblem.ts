/** Error messages of a failed import, in one line. */

/** Returns the message, with the position in the user's code if known. */
export const text = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const [head = "", frame = ""] = error.stack?.split("\n", 2) ?? []
  const place = headPlace.exec(head)?.[1] ?? framePlace.exec(frame)?.[1]
  if (place === undefined) return error.message
  // A module that may be imported again has a query behind its path. URLs have a slash before the drive of Windows.
  const path = place.replace(/\?[^:?]*/, "").replace(/^\/(?=[A-Za-z]:\/)/, "")
  return `${error.message} (${path})`
}

/** An absolute path of a POSIX system or of Windows. */
const absolute = String.raw`(?:\/|[A-Za-z]:[\\/]).*`

/** A stack starts with the position of a syntax error. */
const headPlace = new RegExp(String.raw`^(?:file:\/\/)?(${absolute}:\d+)$`)

const framePlace = new RegExp(String.raw`^ +at .*?(?:file:\/\/|\()(${absolute}:\d+:\d+)`)
