/** Version of this package, from package.json, for the server's metadata. */
import packageJson from "../package.json" with { type: "json" }

export const { version } = packageJson
