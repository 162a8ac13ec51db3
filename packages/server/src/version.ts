/** The version of this package, for the server's metadata. Read from package.json, so that it is written down once. */
import packageJson from "../package.json" with { type: "json" }

export const { version } = packageJson
