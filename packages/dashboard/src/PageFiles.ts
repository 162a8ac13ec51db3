/** The files of the page, as the build has made them of the sources in `page`. */
import { readdir, readFile } from "node:fs/promises"
import { extname } from "node:path"

/** A file of the page. */
export interface PageFile {
  /** Path below that of the page, without a slash at its start: `index.html`, `assets/index-C0ffee.js`. */
  readonly path: string
  readonly body: Uint8Array
  /** The body after gzip. */
  readonly compressed: Uint8Array
  readonly contentType: string
  /** Value of the header `etag`, with its quotes. */
  readonly etag: string
  /** Whether the path contains a hash of the content, so that a browser never asks again. */
  readonly immutable: boolean
}

/**
 * Headers that every file needs. The page runs nothing but its own scripts, sends requests to its own origin only, and
 * cannot be framed.
 */
export const headers: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob: data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
}

const folder = new URL("../built/", import.meta.url)

const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
}

/**
 * Returns the paths of all files, `index.html` among them.
 *
 * @throws Error if the page has not been built, which only happens in a checkout of the repository
 */
export const paths = async (): Promise<ReadonlyArray<string>> => {
  const found = await readdir(folder, { recursive: true }).catch((cause: unknown) => {
    throw new Error("the page has not been built: run 'npm run setup'", { cause })
  })
  return found.filter((path) => extname(path) in contentTypes).map((path) => path.replaceAll("\\", "/"))
}

/**
 * Reads all files.
 *
 * @throws Error as `paths` does
 */
export const read = async (): Promise<ReadonlyArray<PageFile>> => Promise.all((await paths()).map(readOne))

/** Reads the file of one of the paths. */
export const readOne = async (path: string): Promise<PageFile> => {
  const { createHash } = process.getBuiltinModule("node:crypto")
  const body = await readFile(new URL(path, folder))
  return {
    path,
    body,
    compressed: await readFile(new URL(`${path}.gz`, folder)),
    contentType: contentTypes[extname(path)] ?? "application/octet-stream",
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`,
    immutable: path.startsWith("assets/"),
  }
}
