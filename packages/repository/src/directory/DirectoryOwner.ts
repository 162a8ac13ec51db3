/**
 * Marks a temporary directory as in use by this process, with a socket in it that the process listens on. The system
 * ends that with the process, however it dies, and other containers that share the directory see it as well, unlike the
 * number of a process.
 */
import { Effect, type Scope } from "effect"
import { lstat, rename } from "node:fs/promises"
import { createConnection, createServer } from "node:net"
import { join } from "node:path"

const socketName = "owner"

/**
 * Marks a directory until the scope closes. Without a mark, a directory is never removed for its owner: on Windows,
 * which has no such sockets, and where the path is too long for one.
 */
export const hold = (directory: string): Effect.Effect<void, never, Scope.Scope> => {
  if (process.platform === "win32") return Effect.void
  // Renamed once it listens, so that a socket of this name that refuses connections has lost its process.
  const created = join(directory, `${socketName}.new`)
  const listen = Effect.callback<() => void>((resume) => {
    const server = createServer((connection) => connection.destroy())
    server.once("error", () => resume(Effect.succeed(() => {})))
    server.listen(created, () => {
      server.unref()
      const close = () => void server.close()
      resume(
        Effect.promise(() =>
          rename(created, join(directory, socketName)).then(
            () => close,
            () => close,
          ),
        ),
      )
    })
  })
  return Effect.asVoid(Effect.acquireRelease(listen, (close) => Effect.sync(close)))
}

/** Whether a process has marked the directory and is gone. */
export const isGone = async (directory: string): Promise<boolean> => {
  const path = join(directory, socketName)
  const found = await lstat(path).catch(() => undefined)
  if (found?.isSocket() !== true) return false
  return new Promise((resolve) => {
    const connection = createConnection(path)
    connection.once("connect", () => {
      connection.destroy()
      resolve(false)
    })
    connection.once("error", (error) => resolve("code" in error && error.code === "ECONNREFUSED"))
  })
}
