/**
 * Calls of the file system that FilePool.ts runs in threads, and how a thread performs one. Only regular files up to a
 * size are read: a FIFO or a device could block for ever, or never end. Effect-free, as threads load it.
 */
import {
  closeSync,
  constants,
  fstatSync,
  opendirSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs"
import { join } from "node:path"

export type FileKind = "file" | "directory" | "link" | "other"

export interface FileEntry {
  readonly name: string
  /** Links are not followed. */
  readonly kind: FileKind
}

/** Calls by their names, each with its result. `kind` follows links; the others do as well, except for entries. */
export interface FileCalls {
  /** Contents of a regular file. */
  readonly read: { readonly maxBytes: number; readonly result: Uint8Array<ArrayBuffer> }
  /** Fails unless the file is regular, readable and at most `maxBytes` long. */
  readonly check: { readonly maxBytes: number; readonly result: null }
  readonly list: { readonly result: ReadonlyArray<FileEntry> }
  readonly kind: { readonly result: FileKind }
  readonly realPath: { readonly result: string }
  /** A text that changes with any file in the directory or in those below it. */
  readonly stamp: { readonly result: string }
}

export type CallName = keyof FileCalls

export interface FileCall<Name extends CallName = CallName> {
  readonly name: Name
  readonly path: string
  /** Only of calls that have a limit. */
  readonly maxBytes: number
}

export type FileReply =
  | { readonly _tag: "Done"; readonly result: FileCalls[CallName]["result"] }
  | { readonly _tag: "Failed"; readonly message: string; readonly code: string | undefined }

/** Maximum entries of a directory, for a stamp with those of the directories in it. */
const maxEntries = 100_000

/** Bytes of one read, after which the thread reports progress. */
const chunkBytes = 8 * 1024 * 1024

/**
 * Performs a call. `progress` is called after each step.
 * @throws Error with the reason
 */
export const perform = ({ name, path, maxBytes }: FileCall, progress: () => void): FileCalls[CallName]["result"] => {
  switch (name) {
    case "read":
      return contentsOf(path, maxBytes, progress)
    case "check":
      return withFile(path, maxBytes, () => null)
    case "list":
      return entries(path, { left: maxEntries }, progress)
    case "kind":
      return kindOf(statSync(path))
    case "realPath":
      return realpathSync(path)
    case "stamp":
      return stamps(path, { left: maxEntries }, progress).toSorted().join("\n")
  }
}

/**
 * Returns the contents of a regular file of at most `maxBytes`.
 * @throws Error with the reason
 */
export const contentsOf = (path: string, maxBytes: number, progress: () => void = () => {}): Uint8Array<ArrayBuffer> =>
  withFile(path, maxBytes, (file, size) => contents(file, size, maxBytes, progress))

const withFile = <A>(path: string, maxBytes: number, use: (file: number, size: number) => A): A => {
  // Before it is opened, which has effects on some devices.
  checkFile(statSync(path), maxBytes)
  // Without waiting for a writer, if the path has become a FIFO. Windows has no such flag, and no FIFO.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const found = fstatSync(file)
    checkFile(found, maxBytes)
    return use(file, found.size)
  } finally {
    closeSync(file)
  }
}

const checkFile = (found: Stats, maxBytes: number): void => {
  if (!found.isFile()) throw new Error(`it is a ${description(found)}, expected a regular file`)
  if (found.size > maxBytes) throw new Error(sizeProblem(`${found.size}`, maxBytes))
}

const sizeProblem = (size: string, maxBytes: number) => `it has ${size} bytes, expected at most ${maxBytes}`

const description = (found: Stats): string => {
  if (found.isDirectory()) return "directory"
  if (found.isFIFO()) return "FIFO"
  return found.isSocket() ? "socket" : "device"
}

/** Reads to the end, which may have moved since the size was taken. */
const contents = (file: number, size: number, maxBytes: number, progress: () => void): Uint8Array<ArrayBuffer> => {
  // One byte more shows the end of the file.
  let bytes = new Uint8Array(size + 1)
  let length = 0
  for (;;) {
    const read = readSync(file, bytes, length, Math.min(chunkBytes, bytes.length - length), null)
    progress()
    length += read
    if (read === 0) return bytes.subarray(0, length)
    if (length > maxBytes) throw new Error(sizeProblem(`more than ${maxBytes}`, maxBytes))
    if (length < bytes.length) continue
    const larger = new Uint8Array(Math.min(2 * length, maxBytes) + 1)
    larger.set(bytes)
    bytes = larger
  }
}

/** Entries that a call may still find. */
interface Allowance {
  left: number
}

const entries = (path: string, allowance: Allowance, progress: () => void): ReadonlyArray<FileEntry> => {
  const found: Array<FileEntry> = []
  const directory = opendirSync(path)
  try {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (allowance.left-- === 0) throw new Error(`${path} has too many entries, expected at most ${maxEntries}`)
      progress()
      found.push({ name: entry.name, kind: kindOf(entry) })
    }
  } finally {
    directory.closeSync()
  }
  return found
}

const kindOf = (found: Pick<Stats, "isFile" | "isDirectory" | "isSymbolicLink">): FileKind => {
  if (found.isFile()) return "file"
  if (found.isDirectory()) return "directory"
  return found.isSymbolicLink() ? "link" : "other"
}

/** A folder that Python writes beside a file that it imports: no part of what a directory was given. */
const compiledPython = "__pycache__"

/** Lines of the files. Links are not followed to directories; a file that cannot be examined counts as its error. */
const stamps = (path: string, allowance: Allowance, progress: () => void): ReadonlyArray<string> =>
  entries(path, allowance, progress).flatMap(({ name, kind }) => {
    const file = join(path, name)
    if (kind === "directory") return name === compiledPython ? [] : stamps(file, allowance, progress)
    progress()
    try {
      const { ino, size, mtimeMs } = statSync(file)
      return [`${file} ${ino} ${size} ${mtimeMs}`]
    } catch (error) {
      return [`${file} ${error instanceof Error ? error.message : String(error)}`]
    }
  })
