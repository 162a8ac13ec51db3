/**
 * Names of models in keys and identifiers of an OpenAPI document, which have few characters. Different names stay
 * different: a name that changes ends with a dot and its hash, and any other name has no dot.
 */
import { createHash } from "node:crypto"

const longest = 64

export const safeName = (name: string): string => {
  if (name.length <= longest && /^[\w-]+$/.test(name)) return name
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 12)
  return `${name.replaceAll(/[^\w-]/gu, "_").slice(0, longest - hash.length)}.${hash}`
}
