/** File system calls as effects, performed by the threads of FilePool.ts. None of them blocks the process. */
import { Context, Data, Effect } from "effect"
import type { CallName, FileCall, FileCalls, FileEntry, FileKind } from "./FileCall.ts"
import { FilePool } from "./FilePool.ts"

export { FilePool } from "./FilePool.ts"

/** A call that failed, or did not return in time. */
export class FileProblem extends Data.TaggedError("FileProblem")<{
  /** Reason, with the path if the system names it. */
  readonly message: string
  /** Of the system, such as `ENOENT`. */
  readonly code: string | undefined
}> {}

const shared = new FilePool()

/** The threads; one pool for the process, except in tests. */
export const Pool = Context.Reference<FilePool>("@nereid/onnx/internal/file/Files/Pool", {
  defaultValue: () => shared,
})

/** Starts a thread of the process, for calls that will come. It ends by itself if none comes. */
export const prepare = (): void => shared.prepare()

/** Ends the threads of the process that have no call. Further calls start one again. */
export const release = (): void => shared.release()

/** The contents of a regular file of at most `maxBytes`. */
export const read = (path: string, maxBytes: number): Effect.Effect<Uint8Array<ArrayBuffer>, FileProblem> =>
  run({ name: "read", path, maxBytes })

/** Fails unless the file is regular, readable and at most `maxBytes` long. */
export const check = (path: string, maxBytes: number): Effect.Effect<void, FileProblem> =>
  Effect.asVoid(run({ name: "check", path, maxBytes }))

export const list = (path: string): Effect.Effect<ReadonlyArray<FileEntry>, FileProblem> =>
  run({ name: "list", path, maxBytes: 0 })

/** Follows links. */
export const kind = (path: string): Effect.Effect<FileKind, FileProblem> => run({ name: "kind", path, maxBytes: 0 })

export const realPath = (path: string): Effect.Effect<string, FileProblem> =>
  run({ name: "realPath", path, maxBytes: 0 })

/**
 * Changes with any file of the directory and those below it, whether it is replaced or written to, except for the
 * folders `__pycache__` of Python.
 */
export const stamp = (path: string): Effect.Effect<string, FileProblem> => run({ name: "stamp", path, maxBytes: 0 })

const run = <Name extends CallName>(call: FileCall<Name>): Effect.Effect<FileCalls[Name]["result"], FileProblem> =>
  Effect.flatMap(Effect.service(Pool), (pool) =>
    Effect.callback((resume) =>
      pool.call(call, (reply) =>
        resume(
          reply._tag === "Done"
            ? Effect.succeed(reply.result as FileCalls[Name]["result"])
            : Effect.fail(new FileProblem({ message: reply.message, code: reply.code })),
        ),
      ),
    ),
  )
