/**
 * How both ports use zlib, which works in the threads of the process: large data in few rounds through them, and only so
 * many decompressions at once as there are threads by default. What is compressed, and how, is HttpCompression.ts's and
 * GrpcCompression.ts's.
 */

/** Of one round, for so many bytes to come; small data without a large buffer. */
export const chunkSize = (expected: number): number => Math.min(Math.max(expected, 1024), 2 ** 20)

const maxRunning = 4

let running = 0
const waiting: Array<() => void> = []

/** Few bytes may become as many as the limit allows, so that many callers together would fill the memory at once. */
export const decompressing = async <A>(run: () => Promise<A>): Promise<A> => {
  if (running < maxRunning) running += 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    return await run()
  } finally {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }
}
