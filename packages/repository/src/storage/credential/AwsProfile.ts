/** Profiles in the files of the AWS command line: `~/.aws/credentials`, and `~/.aws/config`. */
import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import type { Environment } from "./Environment.ts"

/** Settings of a profile, from both files. */
export type AwsProfile = Readonly<Record<string, string>>

/** A profile; undefined if neither file has it. */
export const read = Effect.fnUntraced(function* (environment: Environment, name: string) {
  const credentials = environment["AWS_SHARED_CREDENTIALS_FILE"] ?? join(homedir(), ".aws/credentials")
  const config = environment["AWS_CONFIG_FILE"] ?? join(homedir(), ".aws/config")
  const [ofCredentials, ofConfig] = yield* Effect.all([contents(credentials), contents(config)])
  const fromConfig = sectionsOf(ofConfig).get(name === "default" ? name : `profile ${name}`)
  const fromCredentials = sectionsOf(ofCredentials).get(name)
  return fromConfig === undefined && fromCredentials === undefined
    ? undefined
    : ({ ...fromConfig, ...fromCredentials } satisfies AwsProfile)
})

const contents = (file: string): Effect.Effect<string> => Effect.promise(() => readFile(file, "utf8").catch(() => ""))

/** Settings by the names of their sections. Nested settings, which are indented, are no part of credentials. */
export const sectionsOf = (text: string): ReadonlyMap<string, AwsProfile> => {
  const sections = new Map<string, Record<string, string>>()
  let current: Record<string, string> = {}
  for (const line of text.split(/\r?\n/)) {
    const [, section] = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line) ?? []
    if (section !== undefined) {
      const name = section.replace(/\s+/, " ")
      current = sections.get(name) ?? {}
      sections.set(name, current)
      continue
    }
    const [, key, value] = /^([\w-]+)\s*=\s*(.*?)\s*$/.exec(line.replace(/\s[#;].*$/, "")) ?? []
    if (key !== undefined && value !== undefined) current[key.toLowerCase()] = value
  }
  return sections
}
