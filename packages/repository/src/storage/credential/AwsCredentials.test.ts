/** Sources of credentials for S3, from servers that check what they are sent as those of AWS do. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { repository } from "../../../../../test/fixtures/repository.ts"
import * as LocalServer from "../http/LocalServer.fixture.ts"
import * as AwsCredentials from "./AwsCredentials.ts"
import * as AwsSignature from "./AwsSignature.ts"

type Variables = Readonly<Record<string, string>>

/** Finds credentials with these files of AWS, and without those of the user. */
const files = Effect.map(repository, (fixture) => {
  fixture.write("config", "")
  const environment = (more: Variables) => ({
    AWS_CONFIG_FILE: `${fixture.path}/config`,
    AWS_SHARED_CREDENTIALS_FILE: `${fixture.path}/credentials`,
    AWS_EC2_METADATA_DISABLED: "true",
    ...more,
  })
  return { fixture, find: (more: Variables = {}) => AwsCredentials.find(environment(more)) }
})

const expiration = "2036-01-02T03:04:05Z"

const keysOf = (name: string): AwsSignature.AwsKeys => ({
  accessKeyId: `id of ${name}`,
  secretAccessKey: `secret of ${name}`,
  sessionToken: `token of ${name}`,
})

/** The reply of the token service to a form, named by its action. */
const assumed = (form: URLSearchParams): LocalServer.LocalReply => {
  const action = form.get("Action")
  const { accessKeyId, secretAccessKey, sessionToken } = keysOf(form.get("RoleArn") ?? "")
  const credentials = `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken><Expiration>${expiration}</Expiration>`
  return {
    body: `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Audience>sts.amazonaws.com</Audience><Credentials>${credentials}</Credentials></${action}Result></${action}Response>`,
  }
}

const formOf = ({ method, path, body, headers }: LocalServer.ReceivedRequest) => {
  expect([method, path, headers["content-type"]]).toEqual(["POST", "/", "application/x-www-form-urlencoded"])
  return new URLSearchParams(body)
}

describe("the files of AWS", () => {
  it.live("have profiles, with keys in one file and settings in the other", () =>
    Effect.gen(function* () {
      const { fixture, find } = yield* files
      fixture.write(
        "config",
        "[default]\nregion = eu-west-1\n[profile other]\nregion=eu-central-1 # near\ns3 =\n  x = y\n",
      )
      fixture.write(
        "credentials",
        "[default]\naws_access_key_id = A\naws_secret_access_key = a/b+c=\n; comment\n[other]\naws_access_key_id=B\naws_secret_access_key=b\naws_session_token=t\n",
      )
      const first = yield* find()
      expect(first.value).toEqual({ region: "eu-west-1", keys: { accessKeyId: "A", secretAccessKey: "a/b+c=" } })
      const other = yield* find({ AWS_PROFILE: "other", AWS_REGION: "" })
      const keys = { accessKeyId: "B", secretAccessKey: "b", sessionToken: "t" }
      expect(other.value).toEqual({ region: "eu-central-1", keys })
      const variables = { AWS_ACCESS_KEY_ID: "C", AWS_SECRET_ACCESS_KEY: "c", AWS_PROFILE: "" }
      expect((yield* find({ ...variables, AWS_REGION: "us-west-2" })).value).toEqual({
        region: "us-west-2",
        keys: { accessKeyId: "C", secretAccessKey: "c" },
      })
    }),
  )

  it.live("lack a profile, or have one with nothing that is supported: denied", () =>
    Effect.gen(function* () {
      const { fixture, find } = yield* files
      fixture.write(
        "config",
        "[profile single]\nsso_session = x\n[profile loop]\nrole_arn = r\nsource_profile = back\n",
      )
      fixture.write("credentials", "[back]\nrole_arn = r\nsource_profile = loop\n")
      const messageOf = (name: string) => Effect.map(Effect.flip(find({ AWS_PROFILE: name })), ({ message }) => message)
      expect(yield* messageOf("none")).toBe("there is no profile 'none' in the files of AWS")
      expect(yield* messageOf("single")).toContain("profile 'single' has no keys")
      expect(yield* messageOf("loop")).toContain("has too many source profiles")
    }),
  )

  it.live("have a role, which the token service gives for the keys of its source", () =>
    Effect.gen(function* () {
      const { fixture, find } = yield* files
      fixture.write("credentials", "[base]\naws_access_key_id=A\naws_secret_access_key=a\n")
      const role = "[profile role]\nrole_arn = arn:1\nsource_profile = base\nexternal_id = e\nregion = eu-west-1\n"
      fixture.write("config", role)
      const server = yield* LocalServer.make((request) => {
        const form = formOf(request)
        expect([form.get("Action"), form.get("ExternalId")]).toEqual(["AssumeRole", "e"])
        const { host = "", authorization, "x-amz-date": date } = request.headers
        const headers = { host, "content-type": "application/x-www-form-urlencoded", "x-amz-date": String(date) }
        const signed = { method: "POST", path: "/", query: [], headers, payload: AwsSignature.sha256(request.body) }
        const time = Date.parse(String(date).replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"))
        const keys = { accessKeyId: "A", secretAccessKey: "a" }
        const expected = AwsSignature.authorization(signed, keys, { region: "eu-west-1", service: "sts", time })
        expect(authorization).toBe(expected)
        return assumed(form)
      })
      const { value, expiresAt } = yield* find({ AWS_PROFILE: "role", AWS_ENDPOINT_URL_STS: server.origin })
      expect([value.keys, expiresAt]).toEqual([keysOf("arn:1"), Date.parse(expiration)])
    }),
  )
})

describe("a web identity", () => {
  it.live("gets the keys of its role for the token in its file, which is read each time", () =>
    Effect.gen(function* () {
      const { fixture, find } = yield* files
      const server = yield* LocalServer.make((request) => {
        expect(request.headers.authorization).toBeUndefined()
        return assumed(formOf(request))
      })
      for (const token of ["first", "second"]) {
        fixture.write("token", `${token}\n`)
        const { value, expiresAt } = yield* find({
          AWS_WEB_IDENTITY_TOKEN_FILE: `${fixture.path}/token`,
          AWS_ROLE_ARN: "arn:aws:iam::1:role/models",
          AWS_ENDPOINT_URL_STS: server.origin,
        })
        expect([value.keys, expiresAt]).toEqual([keysOf("arn:aws:iam::1:role/models"), Date.parse(expiration)])
        expect(Object.fromEntries(new URLSearchParams(server.requests.at(-1)?.body))).toEqual({
          Action: "AssumeRoleWithWebIdentity",
          Version: "2011-06-15",
          RoleArn: "arn:aws:iam::1:role/models",
          RoleSessionName: "nereid",
          WebIdentityToken: token,
        })
      }
    }),
  )

  it.live("is refused with the reason of the service", () =>
    Effect.gen(function* () {
      const { fixture, find } = yield* files
      fixture.write("token", "old")
      const body = `<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code><Message>it is old</Message></Error></ErrorResponse>`
      const server = yield* LocalServer.make(() => ({ status: 400, body }))
      const problem = yield* Effect.flip(
        find({
          AWS_WEB_IDENTITY_TOKEN_FILE: `${fixture.path}/token`,
          AWS_ROLE_ARN: "arn",
          AWS_ENDPOINT_URL_STS: server.origin,
        }),
      )
      expect(problem).toMatchObject({ kind: "denied", code: "ExpiredTokenException", message: "it is old" })
    }),
  )
})

const document = (name: string) => {
  const { accessKeyId, secretAccessKey, sessionToken } = keysOf(name)
  const keys = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken }
  return LocalServer.json({ Code: "Success", Type: "AWS-HMAC", ...keys, Expiration: expiration })
}

describe("the machine", () => {
  it.live("has an agent of its container, which wants the token of a variable or a file", () =>
    Effect.gen(function* () {
      const { fixture, find } = yield* files
      const server = yield* LocalServer.make(({ headers, path }) =>
        headers.authorization === "a-token" && path === "/v1/credentials" ? document("agent") : { status: 401 },
      )
      fixture.write("token", "a-token\n")
      const agent = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.origin}/v1/credentials` }
      const sources = [
        { AWS_CONTAINER_AUTHORIZATION_TOKEN: "a-token" },
        { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: `${fixture.path}/token` },
      ]
      for (const source of sources) {
        const { value, expiresAt } = yield* find({ ...agent, ...source })
        expect([value.keys, expiresAt]).toEqual([keysOf("agent"), Date.parse(expiration)])
      }
      expect((yield* Effect.flip(find(agent))).kind).toBe("denied")
    }),
  )

  it.live("sends no token to an agent elsewhere over plain HTTP", () =>
    Effect.gen(function* () {
      const { find } = yield* files
      const urls = ["http://example.com/x", "ftp://127.0.0.1/x", "http://169.254.170.2.example.com/", "nonsense"]
      for (const url of urls) {
        const problem = yield* Effect.flip(find({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url }))
        expect(problem.code).toBe("InvalidCredentialsUrl")
      }
      const relative = { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: "@example.com/x" }
      expect((yield* Effect.flip(find(relative))).code).toBe("InvalidCredentialsUrl")
    }),
  )

  it.live("is an instance with a role, asked with a session token (IMDSv2)", () =>
    Effect.gen(function* () {
      const { find } = yield* files
      const server = yield* LocalServer.make(({ method, path, headers }) => {
        if (method === "PUT" && path === "/latest/api/token") {
          expect(headers["x-aws-ec2-metadata-token-ttl-seconds"]).toBe("21600")
          return { body: "session" }
        }
        if (headers["x-aws-ec2-metadata-token"] !== "session") return { status: 401 }
        const folder = "/latest/meta-data/iam/security-credentials/"
        if (path === folder) return { body: "models\n" }
        return path === `${folder}models` ? document("role") : { status: 404 }
      })
      const { value, expiresAt } = yield* find({
        AWS_EC2_METADATA_DISABLED: "false",
        AWS_EC2_METADATA_SERVICE_ENDPOINT: server.origin,
      })
      expect([value.keys, expiresAt]).toEqual([keysOf("role"), Date.parse(expiration)])
    }),
  )

  it.live("has none: requests are not signed", () =>
    Effect.gen(function* () {
      const { find } = yield* files
      expect((yield* find()).value).toEqual({ keys: undefined, region: "us-east-1" })
      const noRole = yield* LocalServer.make(({ method }) => (method === "PUT" ? { body: "session" } : { status: 404 }))
      const instance = { AWS_EC2_METADATA_DISABLED: "", AWS_EC2_METADATA_SERVICE_ENDPOINT: noRole.origin }
      expect((yield* find(instance)).value.keys).toBeUndefined()
    }),
  )
})
