/**
 * Shared use of zlib's thread pool by both ports: large chunks need few hand-offs, and the number of concurrent
 * decompressions is the default number of threads. HttpCompression.ts and GrpcCompression.ts use it.
 */

/** Returns the size of one chunk, for an expected number of bytes. Small data does not allocate a large buffer. */
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
