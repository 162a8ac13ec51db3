/** Files for TLS in a temporary folder: the servers' certificate, a client's, and two authorities. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { authority } from "../fixtures/certificate.ts"

/** The folder, for as long as the scope is open. */
export const write = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "nereid-"))
    const trusted = authority()
    const files = { "authority.crt": trusted.cert, "other.crt": authority("other").cert }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    for (const name of ["server", "client"]) {
      const { cert, key } = trusted.issue(name)
      writeFileSync(join(folder, `${name}.crt`), cert)
      writeFileSync(join(folder, `${name}.key`), key)
    }
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
)
