/** Rejects a promise after this number of milliseconds, so that a hang becomes a named error. */
export const within = <A>(milliseconds: number, label: string, promise: Promise<A>): Promise<A> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Waited ${milliseconds} ms for ${label}`)), milliseconds)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
