/**
 * The credentials for S3, from the first source that has some: variables, a web identity, a profile, the agent of a
 * container, the metadata of an instance. Without any, requests are not signed, which public buckets accept.
 */
import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { StoreProblem } from "../http/StoreProblem.ts"
import * as AwsMetadata from "./AwsMetadata.ts"
import * as AwsProfile from "./AwsProfile.ts"
import type { AwsKeys } from "./AwsSignature.ts"
import * as AwsTokenService from "./AwsTokenService.ts"
import type { Environment } from "./Environment.ts"
import type { Issued } from "./RenewedCredentials.ts"

export interface AwsCredentials {
  /** Undefined for requests without a signature. */
  readonly keys: AwsKeys | undefined
  readonly region: string
}

export const find = Effect.fnUntraced(function* (
  environment: Environment,
): Effect.fn.Return<Issued<AwsCredentials>, StoreProblem> {
  const named = environment["AWS_PROFILE"] || undefined
  const profile = yield* AwsProfile.read(environment, named ?? "default")
  const region = environment["AWS_REGION"] || environment["AWS_DEFAULT_REGION"] || profile?.["region"] || "us-east-1"
  const keys = ofVariables(environment)
  const issued = keys ?? (yield* ofSources(environment, region, named, profile))
  return { value: { keys: issued?.value, region }, expiresAt: issued?.expiresAt }
})

const ofSources = Effect.fnUntraced(function* (
  environment: Environment,
  region: string,
  named: string | undefined,
  profile: AwsProfile.AwsProfile | undefined,
): Effect.fn.Return<Issued<AwsKeys> | undefined, StoreProblem> {
  if (named !== undefined) {
    if (profile === undefined) return yield* denied("NoProfile", `there is no profile '${named}' in the files of AWS`)
    return yield* ofProfile(environment, region, named, profile, maxSources)
  }
  const [file, arn] = [environment["AWS_WEB_IDENTITY_TOKEN_FILE"], environment["AWS_ROLE_ARN"]]
  if (file !== undefined && arn !== undefined) {
    return yield* ofTokenFile(environment, region, file, arn, environment["AWS_ROLE_SESSION_NAME"])
  }
  if (profile !== undefined && hasCredentials(profile)) {
    return yield* ofProfile(environment, region, "default", profile, maxSources)
  }
  return (yield* AwsMetadata.ofContainer(environment)) ?? (yield* AwsMetadata.ofInstance(environment))
})

const ofVariables = (environment: Environment): Issued<AwsKeys> | undefined => {
  const accessKeyId = environment["AWS_ACCESS_KEY_ID"]
  const secretAccessKey = environment["AWS_SECRET_ACCESS_KEY"]
  if (!accessKeyId || !secretAccessKey) return undefined
  const sessionToken = environment["AWS_SESSION_TOKEN"] || undefined
  return { value: { accessKeyId, secretAccessKey, sessionToken }, expiresAt: undefined }
}

/** Profiles that may have their keys from one another. */
const maxSources = 5

const hasCredentials = (profile: AwsProfile.AwsProfile): boolean =>
  ["aws_access_key_id", "role_arn", "credential_process", "sso_session", "sso_start_url"].some(
    (key) => profile[key] !== undefined,
  )

const ofProfile: (
  environment: Environment,
  region: string,
  name: string,
  profile: AwsProfile.AwsProfile,
  sources: number,
) => Effect.Effect<Issued<AwsKeys>, StoreProblem> = Effect.fnUntraced(
  function* (environment, region, name, profile, sources) {
    const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey } = profile
    const { role_arn: arn, source_profile: source, web_identity_token_file: tokenFile } = profile
    if (arn !== undefined && tokenFile !== undefined) {
      return yield* ofTokenFile(environment, region, tokenFile, arn, profile["role_session_name"])
    }
    if (arn !== undefined && source !== undefined && source !== name) {
      if (sources === 0) return yield* denied("TooManyProfiles", `profile '${name}' has too many source profiles`)
      const other = yield* AwsProfile.read(environment, source)
      if (other === undefined) return yield* denied("NoProfile", `there is no profile '${source}' in the files of AWS`)
      const { value } = yield* ofProfile(environment, region, source, other, sources - 1)
      const [session, externalId] = [profile["role_session_name"], profile["external_id"]]
      return yield* AwsTokenService.forKeys(environment, region, value, { arn, session, externalId })
    }
    if (accessKeyId === undefined || secretAccessKey === undefined) {
      const message = `profile '${name}' has no keys, role with a source_profile, or role with a web_identity_token_file; nothing else of a profile is supported`
      return yield* denied("NoCredentials", message)
    }
    const keys: AwsKeys = { accessKeyId, secretAccessKey, sessionToken: profile["aws_session_token"] }
    if (arn === undefined) return { value: keys, expiresAt: undefined }
    const [session, externalId] = [profile["role_session_name"], profile["external_id"]]
    return yield* AwsTokenService.forKeys(environment, region, keys, { arn, session, externalId })
  },
)

const ofTokenFile = Effect.fnUntraced(function* (
  environment: Environment,
  region: string,
  file: string,
  arn: string,
  session: string | undefined,
): Effect.fn.Return<Issued<AwsKeys>, StoreProblem> {
  // Read each time: Kubernetes replaces it.
  const token = yield* Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: () =>
      new StoreProblem({ kind: "denied", code: "NoToken", message: `cannot read the web identity token ${file}` }),
  })
  return yield* AwsTokenService.forWebIdentity(environment, region, { arn, session, token: token.trim() })
})

const denied = (code: string, message: string) => new StoreProblem({ kind: "denied", code, message })
