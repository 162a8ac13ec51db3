/**
 * The file that TRITON_CLOUD_CREDENTIAL_PATH names: credentials for repositories, by the beginnings of their URLs. It
 * replaces the variables of credentials. It is read whenever credentials are needed, so that keys can be replaced.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import * as JsonReply from "../http/JsonReply.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import { type Environment, replaced } from "./Environment.ts"

export type CredentialKind = "s3" | "gs" | "as"

/** The variables that hold credentials, which the file replaces. */
const removed: Readonly<Record<CredentialKind, RegExp>> = {
  s3: /^AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|REGION|DEFAULT_REGION|PROFILE)$/,
  gs: /^GOOGLE_APPLICATION_CREDENTIALS$/,
  as: /^AZURE_STORAGE_(?:ACCOUNT|KEY|AUTH_TYPE|CLIENT_ID|SAS_TOKEN)$/,
}

/** Fields of an entry, and the variables that they stand for. */
const variables: Readonly<Record<"s3" | "as", Readonly<Record<string, string>>>> = {
  s3: {
    key_id: "AWS_ACCESS_KEY_ID",
    secret_key: "AWS_SECRET_ACCESS_KEY",
    session_token: "AWS_SESSION_TOKEN",
    region: "AWS_REGION",
    profile: "AWS_PROFILE",
  },
  as: {
    account_str: "AZURE_STORAGE_ACCOUNT",
    account_key: "AZURE_STORAGE_KEY",
    auth_type: "AZURE_STORAGE_AUTH_TYPE",
    client_id: "AZURE_STORAGE_CLIENT_ID",
  },
}

/** The variables with which a repository finds its credentials. `url`: without secrets. */
export const apply = Effect.fnUntraced(function* (
  environment: Environment,
  kind: CredentialKind,
  url: string,
): Effect.fn.Return<Environment, StoreProblem> {
  const file = environment["TRITON_CLOUD_CREDENTIAL_PATH"]
  if (file === undefined || file === "") return environment
  const text = yield* Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: (error) => denied(`cannot read TRITON_CLOUD_CREDENTIAL_PATH: ${errorMessage(error)}`),
  })
  const document = JsonReply.parse(text)
  if (typeof document !== "object" || document === null) return yield* denied(`${file} is not a JSON object`)
  const entries = JsonReply.field(document, kind)
  const [prefix] = Object.keys(typeof entries === "object" && entries !== null ? entries : {})
    .filter((prefix) => url.startsWith(prefix))
    .toSorted((a, b) => b.length - a.length)
  if (prefix === undefined) {
    // With two spaces, as in Triton.
    const message = `Cannot match credential for path  ${url}`
    return yield* new StoreProblem({ kind: "denied", code: "NoMatch", message })
  }
  const entry = JsonReply.field(entries, prefix)
  if (kind === "gs") {
    const credentials = typeof entry === "string" ? entry : ""
    return replaced(environment, removed.gs, { GOOGLE_APPLICATION_CREDENTIALS: credentials })
  }
  const added = Object.entries(variables[kind]).map(([field, name]) => [name, JsonReply.text(entry, field)] as const)
  return replaced(environment, removed[kind], Object.fromEntries(added.filter(([, value]) => value !== undefined)))
})

const denied = (message: string) => new StoreProblem({ kind: "denied", code: "NoCredentials", message })
