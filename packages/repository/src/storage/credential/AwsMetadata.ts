/**
 * Credentials of the machine: from the agent of a container (ECS, EKS pod identity), or from the metadata service of an
 * EC2 instance, version 2.
 */
import { Effect, Result } from "effect"
import { readFile } from "node:fs/promises"
import { isIP } from "node:net"
import { type HttpRequest, sendForText } from "../http/HttpExchange.ts"
import * as JsonReply from "../http/JsonReply.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { AwsKeys } from "./AwsSignature.ts"
import { type Environment, isTrue } from "./Environment.ts"
import type { Issued } from "./RenewedCredentials.ts"

/** Milliseconds without an answer. Outside of EC2, nothing answers. */
const metadataTimeout = 1_000

/** Undefined if the variables name no agent. */
export const ofContainer = Effect.fnUntraced(function* (
  environment: Environment,
): Effect.fn.Return<Issued<AwsKeys> | undefined, StoreProblem> {
  const relative = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]
  const full = environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
  if (relative === undefined && full === undefined) return undefined
  const url = URL.parse(relative === undefined ? (full ?? "") : `http://169.254.170.2${relative}`)
  if (url === null || !isAllowed(url)) {
    const message = "AWS_CONTAINER_CREDENTIALS_FULL_URI is not a URL of https, or of this machine"
    return yield* new StoreProblem({ kind: "denied", code: "InvalidCredentialsUrl", message })
  }
  const file = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
  const token =
    file === undefined
      ? environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
      : yield* Effect.tryPromise({
          try: () => readFile(file, "utf8"),
          catch: () => new StoreProblem({ kind: "denied", code: "NoToken", message: `cannot read ${file}` }),
        })
  const headers = token === undefined ? {} : { authorization: token.trim() }
  const { origin, pathname, search } = url
  return yield* credentials({ method: "GET", origin, path: pathname + search, headers })
})

/** Undefined outside of EC2, and for an instance without a role. */
export const ofInstance = Effect.fnUntraced(function* (
  environment: Environment,
): Effect.fn.Return<Issued<AwsKeys> | undefined, StoreProblem> {
  if (isTrue(environment["AWS_EC2_METADATA_DISABLED"])) return undefined
  const { origin } = new URL(environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] ?? "http://169.254.169.254")
  const request = { origin, timeout: metadataTimeout }
  const tokenHeaders = { "x-aws-ec2-metadata-token-ttl-seconds": "21600" }
  const token = yield* Effect.result(
    sendForText({ ...request, method: "PUT", path: "/latest/api/token", headers: tokenHeaders, body: "" }).pipe(
      Effect.timeout("2 seconds"),
    ),
  )
  if (Result.isFailure(token) || token.success.status !== 200) return undefined
  const headers = { "x-aws-ec2-metadata-token": token.success.text }
  const folder = "/latest/meta-data/iam/security-credentials/"
  const role = yield* retrying(sendForText({ ...request, method: "GET", path: folder, headers }))
  if (role.status === 404) return undefined
  if (role.status !== 200) return yield* ReplyProblem.make(role)
  const [name = ""] = role.text.split("\n")
  return yield* credentials({ ...request, method: "GET", path: `${folder}${name.trim()}`, headers })
})

/** Over plain HTTP, only to agents on this machine or its link. */
const isAllowed = ({ protocol, hostname }: URL): boolean => {
  if (protocol === "https:") return true
  const host = hostname.replace(/^\[(.*)\]$/, "$1")
  if (protocol !== "http:") return false
  if (host === "localhost" || host === "::1" || host === "fd00:ec2::23") return true
  return isIP(host) === 4 && (host.startsWith("127.") || host === "169.254.170.2" || host === "169.254.170.23")
}

const credentials = (request: HttpRequest): Effect.Effect<Issued<AwsKeys>, StoreProblem> =>
  sendForText(request).pipe(
    Effect.flatMap(({ status, headers, text }): Effect.Effect<Issued<AwsKeys>, StoreProblem> => {
      if (status !== 200) return Effect.fail(ReplyProblem.make({ status, headers }))
      const reply = JsonReply.parse(text)
      const accessKeyId = JsonReply.text(reply, "AccessKeyId")
      const secretAccessKey = JsonReply.text(reply, "SecretAccessKey")
      if (accessKeyId === undefined || secretAccessKey === undefined) {
        const message = `${request.origin} has answered without credentials`
        return Effect.fail(new StoreProblem({ kind: "failed", code: "InvalidAnswer", message }))
      }
      const expiresAt = Date.parse(JsonReply.text(reply, "Expiration") ?? "")
      const value = { accessKeyId, secretAccessKey, sessionToken: JsonReply.text(reply, "Token") }
      return Effect.succeed({ value, expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt })
    }),
    retrying,
  )
