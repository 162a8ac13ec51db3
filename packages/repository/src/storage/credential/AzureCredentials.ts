/**
 * The credentials for Azure Blob Storage: the key of the account, a token of an identity that Azure manages, or none.
 * A shared access signature is part of the URL or of a variable, and needs no other credentials.
 */
import { Clock, Effect } from "effect"
import { readFile } from "node:fs/promises"
import { encode, encodeQuery } from "../http/Encoding.ts"
import { type HttpRequest, sendForText } from "../http/HttpExchange.ts"
import * as JsonReply from "../http/JsonReply.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { Environment } from "./Environment.ts"
import type { Issued } from "./RenewedCredentials.ts"

export type AzureCredentials =
  | { readonly type: "key"; readonly account: string; readonly key: Buffer }
  | { readonly type: "token"; readonly token: string }
  | { readonly type: "anonymous" }

const resource = "https://storage.azure.com"

/** `account`: of the URL. */
export const find = Effect.fnUntraced(function* (
  environment: Environment,
  account: string,
): Effect.fn.Return<Issued<AzureCredentials>, StoreProblem> {
  const type = environment["AZURE_STORAGE_AUTH_TYPE"]?.toLowerCase()
  const key = environment["AZURE_STORAGE_KEY"]
  if (type === "managed_identity" || type === "default") return yield* ofIdentity(environment)
  if (type !== undefined && type !== "" && type !== "access_key") {
    return yield* denied(`AZURE_STORAGE_AUTH_TYPE is '${type}', expected managed_identity or default`)
  }
  if (key === undefined || key === "") return { value: { type: "anonymous" }, expiresAt: undefined }
  const name = environment["AZURE_STORAGE_ACCOUNT"] || account
  return { value: { type: "key", account: name, key: Buffer.from(key, "base64") }, expiresAt: undefined }
})

/** Of a pod with a workload identity, of an app service, or of the machine. */
const ofIdentity = Effect.fnUntraced(function* (
  environment: Environment,
): Effect.fn.Return<Issued<AzureCredentials>, StoreProblem> {
  const client = environment["AZURE_STORAGE_CLIENT_ID"] || environment["AZURE_CLIENT_ID"] || undefined
  const tokenFile = environment["AZURE_FEDERATED_TOKEN_FILE"]
  const tenant = environment["AZURE_TENANT_ID"]
  if (tokenFile !== undefined && tenant !== undefined && client !== undefined) {
    const assertion = yield* Effect.tryPromise({
      try: () => readFile(tokenFile, "utf8"),
      catch: () => denied(`cannot read AZURE_FEDERATED_TOKEN_FILE ${tokenFile}`),
    })
    const body = encodeQuery([
      ["grant_type", "client_credentials"],
      ["client_id", client],
      ["client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"],
      ["client_assertion", assertion.trim()],
      ["scope", `${resource}/.default`],
    ])
    const { origin } = new URL(environment["AZURE_AUTHORITY_HOST"] ?? "https://login.microsoftonline.com")
    const headers = { "content-type": "application/x-www-form-urlencoded" }
    return yield* token({ method: "POST", origin, path: `/${encode(tenant)}/oauth2/v2.0/token`, headers, body })
  }
  const query = [["resource", resource] as const, ...(client === undefined ? [] : [["client_id", client] as const])]
  const [endpoint, secret] = [environment["IDENTITY_ENDPOINT"], environment["IDENTITY_HEADER"]]
  if (endpoint !== undefined && secret !== undefined) {
    const { origin, pathname } = new URL(endpoint)
    const path = `${pathname}?${encodeQuery([["api-version", "2019-08-01"], ...query])}`
    return yield* token({ method: "GET", origin, path, headers: { "x-identity-header": secret } })
  }
  const { origin } = new URL(environment["AZURE_POD_IDENTITY_AUTHORITY_HOST"] ?? "http://169.254.169.254")
  const path = `/metadata/identity/oauth2/token?${encodeQuery([["api-version", "2018-02-01"], ...query])}`
  return yield* token({ method: "GET", origin, path, headers: { metadata: "true" }, timeout: 5_000 })
})

const token = (request: HttpRequest): Effect.Effect<Issued<AzureCredentials>, StoreProblem> =>
  Effect.all([sendForText(request), Clock.currentTimeMillis]).pipe(
    Effect.flatMap(([{ status, headers, text }, now]) => {
      const reply = JsonReply.parse(text)
      if (status !== 200) {
        // The description may have the assertion in it.
        const problem = ReplyProblem.make({ status, headers, code: JsonReply.text(reply, "error") })
        return Effect.fail(
          status === 400 ? denied(`${request.origin} has refused the identity: ${problem.code}`) : problem,
        )
      }
      const value = JsonReply.text(reply, "access_token")
      // An app service answers with the time of expiry alone, in seconds since 1970.
      const expiresOn = JsonReply.number(reply, "expires_on")
      const seconds =
        JsonReply.number(reply, "expires_in") ?? (expiresOn === undefined ? undefined : expiresOn - now / 1000)
      if (value === undefined) return Effect.fail(denied(`${request.origin} has answered without an access token`))
      const expiresAt = seconds === undefined ? undefined : now + seconds * 1000
      return Effect.succeed({ value: { type: "token", token: value } as const, expiresAt })
    }),
    retrying,
  )

const denied = (message: string) => new StoreProblem({ kind: "denied", code: "InvalidCredentials", message })
