/** Input of the user that cannot be sent, with the reason. */
export class Invalid extends Error {
  override readonly name = "Invalid"
}

/** The result, or why the user's input has none. */
export const attempt = <A>(read: () => A): A | Invalid => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Invalid) return error
    throw error
  }
}

/** @throws the problem, where there is no value */
export const valid = <A>(value: A | Invalid): A => {
  if (value instanceof Invalid) throw value
  return value
}
