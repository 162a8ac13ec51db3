/** Credentials of a role, from the token service of AWS: for the token of an identity provider, or for other keys. */
import { Clock, Effect, Result } from "effect"
import { encodeQuery, type Query } from "../http/Encoding.ts"
import { sendForText } from "../http/HttpExchange.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import * as Xml from "../http/Xml.ts"
import * as AwsSignature from "./AwsSignature.ts"
import type { Environment } from "./Environment.ts"
import type { Issued } from "./RenewedCredentials.ts"

const version = ["Version", "2011-06-15"] as const

/** For a token in a file, as Kubernetes projects it into pods. */
export const forWebIdentity = (
  environment: Environment,
  region: string,
  role: { readonly arn: string; readonly session: string | undefined; readonly token: string },
) =>
  request(environment, region, undefined, [
    ["Action", "AssumeRoleWithWebIdentity"],
    version,
    ["RoleArn", role.arn],
    ["RoleSessionName", role.session ?? "nereid"],
    ["WebIdentityToken", role.token],
  ])

/** For the keys of a source profile. */
export const forKeys = (
  environment: Environment,
  region: string,
  keys: AwsSignature.AwsKeys,
  role: { readonly arn: string; readonly session: string | undefined; readonly externalId: string | undefined },
) =>
  request(environment, region, keys, [
    ["Action", "AssumeRole"],
    version,
    ["RoleArn", role.arn],
    ["RoleSessionName", role.session ?? "nereid"],
    ...(role.externalId === undefined ? [] : [["ExternalId", role.externalId] as const]),
  ])

const request = Effect.fnUntraced(function* (
  environment: Environment,
  region: string,
  keys: AwsSignature.AwsKeys | undefined,
  form: Query,
): Effect.fn.Return<Issued<AwsSignature.AwsKeys>, StoreProblem> {
  const time = yield* Clock.currentTimeMillis
  const suffix = region.startsWith("cn-") ? ".cn" : ""
  const endpoint =
    environment["AWS_ENDPOINT_URL_STS"] ??
    environment["AWS_ENDPOINT_URL"] ??
    `https://sts.${region}.amazonaws.com${suffix}`
  const { origin, host } = new URL(endpoint)
  const body = encodeQuery(form)
  const signed = {
    host,
    "content-type": "application/x-www-form-urlencoded",
    "x-amz-date": AwsSignature.timestamp(time),
    ...(keys?.sessionToken === undefined ? {} : { "x-amz-security-token": keys.sessionToken }),
  }
  const headers =
    keys === undefined
      ? signed
      : {
          ...signed,
          authorization: AwsSignature.authorization(
            { method: "POST", path: "/", query: [], headers: signed, payload: AwsSignature.sha256(body) },
            keys,
            { region, service: "sts", time },
          ),
        }
  const send = sendForText({ method: "POST", origin, path: "/", headers, body }).pipe(
    Effect.flatMap((reply) => Effect.fromResult(parsed(reply))),
  )
  return yield* retrying(send)
})

type Reply = Effect.Success<ReturnType<typeof sendForText>>

const parsed = ({ status, headers, text }: Reply): Result.Result<Issued<AwsSignature.AwsKeys>, StoreProblem> => {
  const document = Result.getOrUndefined(Result.try({ try: () => Xml.parse(text), catch: () => "no XML" }))
  if (status !== 200) {
    const error = Xml.childOf(document, "Error")
    const [code, message] = [Xml.textOf(error, "Code"), Xml.textOf(error, "Message")]
    return Result.fail(ReplyProblem.make({ status, headers, code, message }))
  }
  const found = document?.children
    .map((result) => Xml.childOf(result, "Credentials"))
    .find((credentials) => credentials !== undefined)
  const accessKeyId = Xml.textOf(found, "AccessKeyId")
  const secretAccessKey = Xml.textOf(found, "SecretAccessKey")
  const expiresAt = Date.parse(Xml.textOf(found, "Expiration") ?? "")
  if (accessKeyId === undefined || secretAccessKey === undefined || Number.isNaN(expiresAt)) {
    const message = "the token service of AWS has answered without credentials"
    return Result.fail(new StoreProblem({ kind: "failed", code: "InvalidAnswer", message }))
  }
  return Result.succeed({
    value: { accessKeyId, secretAccessKey, sessionToken: Xml.textOf(found, "SessionToken") },
    expiresAt,
  })
}
