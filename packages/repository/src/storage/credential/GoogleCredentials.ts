/**
 * The access token for Google Cloud Storage: of the file that GOOGLE_APPLICATION_CREDENTIALS names, of the file of the
 * gcloud command line, or of the metadata server of the machine. Without any, requests are anonymous.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Clock, Effect, Result } from "effect"
import { createSign } from "node:crypto"
import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { encodeQuery, type Query } from "../http/Encoding.ts"
import { type HttpRequest, sendForText } from "../http/HttpExchange.ts"
import * as JsonReply from "../http/JsonReply.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { Environment } from "./Environment.ts"
import type { Issued } from "./RenewedCredentials.ts"

/** An access token; undefined for anonymous requests. */
export type GoogleToken = string | undefined

const anonymous: Issued<GoogleToken> = { value: undefined, expiresAt: undefined }

const scope = "https://www.googleapis.com/auth/devstorage.read_only"

export const find = Effect.fnUntraced(function* (
  environment: Environment,
): Effect.fn.Return<Issued<GoogleToken>, StoreProblem> {
  const file = environment["GOOGLE_APPLICATION_CREDENTIALS"]
  if (file !== undefined && file !== "") {
    const text = yield* Effect.tryPromise({
      try: () => readFile(file, "utf8"),
      catch: (error) => denied(`cannot read GOOGLE_APPLICATION_CREDENTIALS: ${errorMessage(error)}`),
    })
    return yield* ofFile(file, text)
  }
  if (environment["STORAGE_EMULATOR_HOST"] !== undefined) return anonymous
  const folder = environment["CLOUDSDK_CONFIG"] ?? join(homedir(), ".config/gcloud")
  const known = join(folder, "application_default_credentials.json")
  const text = yield* Effect.promise(() => readFile(known, "utf8").catch(() => undefined))
  return yield* text === undefined ? ofMachine(environment) : ofFile(known, text)
})

const ofFile = Effect.fnUntraced(function* (
  file: string,
  text: string,
): Effect.fn.Return<Issued<GoogleToken>, StoreProblem> {
  const document = JsonReply.parse(text)
  const type = JsonReply.text(document, "type")
  const tokenUrl = JsonReply.text(document, "token_uri") ?? "https://oauth2.googleapis.com/token"
  if (type === "authorized_user") {
    const names = ["client_id", "client_secret", "refresh_token"]
    const fields = names.map((name) => [name, JsonReply.text(document, name) ?? ""] as const)
    return yield* exchange(tokenUrl, [["grant_type", "refresh_token"], ...fields])
  }
  if (type === "service_account") {
    const now = yield* Clock.currentTimeMillis
    const assertion = yield* Effect.try({
      try: () => signedAssertion(document, tokenUrl, now),
      catch: () => denied(`${file} has no valid private_key`),
    })
    const grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    return yield* exchange(tokenUrl, [
      ["grant_type", grant],
      ["assertion", assertion],
    ])
  }
  const problem = type === undefined ? "no type" : `type '${type}'`
  return yield* denied(`${file} has ${problem}, expected service_account or authorized_user`)
})

/** A JSON web token in the name of the account, valid for an hour. */
export const signedAssertion = (account: unknown, audience: string, now: number): string => {
  const issuedAt = Math.floor(now / 1000)
  const keyId = JsonReply.text(account, "private_key_id")
  const header = { alg: "RS256", typ: "JWT", ...(keyId === undefined ? {} : { kid: keyId }) }
  const email = JsonReply.text(account, "client_email")
  const claims = { iss: email, scope, aud: audience, iat: issuedAt, exp: issuedAt + 3600 }
  const unsigned = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")
  const key = JsonReply.text(account, "private_key") ?? ""
  return `${unsigned}.${createSign("RSA-SHA256").update(unsigned).sign(key, "base64url")}`
}

const exchange = (tokenUrl: string, form: Query): Effect.Effect<Issued<GoogleToken>, StoreProblem> => {
  const url = URL.parse(tokenUrl)
  if (url === null) return Effect.fail(denied("token_uri is not a URL"))
  const headers = { "content-type": "application/x-www-form-urlencoded" }
  const { origin, pathname, search } = url
  return retrying(token({ method: "POST", origin, path: pathname + search, headers, body: encodeQuery(form) }))
}

/** Anonymous on a machine without a metadata server. */
const ofMachine = Effect.fnUntraced(function* (
  environment: Environment,
): Effect.fn.Return<Issued<GoogleToken>, StoreProblem> {
  const origin = `http://${environment["GCE_METADATA_HOST"] ?? "metadata.google.internal"}`
  const path = "/computeMetadata/v1/instance/service-accounts/default/token"
  const headers = { "metadata-flavor": "Google" }
  const found = yield* token({ method: "GET", origin, path, headers, timeout: 1_000 }).pipe(
    Effect.timeout("2 seconds"),
    Effect.result,
  )
  return Result.isSuccess(found) ? found.success : anonymous
})

const token = Effect.fnUntraced(function* (request: HttpRequest): Effect.fn.Return<Issued<GoogleToken>, StoreProblem> {
  const { status, headers, text } = yield* sendForText(request)
  const now = yield* Clock.currentTimeMillis
  const reply = JsonReply.parse(text)
  if (status !== 200) {
    const [code, message] = [JsonReply.text(reply, "error"), JsonReply.text(reply, "error_description")]
    const problem = ReplyProblem.make({ status, headers, code, message })
    // A refresh token that was revoked is answered with 400.
    return yield* status === 400 ? new StoreProblem({ ...problem, kind: "denied", message: problem.message }) : problem
  }
  const value = JsonReply.text(reply, "access_token")
  const seconds = JsonReply.number(reply, "expires_in")
  if (value === undefined) return yield* denied(`${request.origin} has answered without an access token`)
  return { value, expiresAt: seconds === undefined ? undefined : now + seconds * 1000 }
})

const denied = (message: string) => new StoreProblem({ kind: "denied", code: "InvalidCredentials", message })
