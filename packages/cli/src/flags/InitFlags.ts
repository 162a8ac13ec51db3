/** The flags of `nereid init`. */
import * as FlagKind from "./FlagKind.ts"
import type { Group } from "./ServerFlags.ts"

export const flags = {
  packages: FlagKind.text(
    "packages",
    "path",
    "Directory of tarballs of Nereid's packages, which the workspace installs instead of those on npm",
  ),
}

export const groups: ReadonlyArray<Group> = [{ title: "Source of the packages", first: "packages" }]
