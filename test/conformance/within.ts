/** A promise that fails after so many milliseconds: what would be a hang is an error with a name. */
export const within = <A>(milliseconds: number, label: string, promise: Promise<A>): Promise<A> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Waited ${milliseconds} ms for ${label}`)), milliseconds)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
