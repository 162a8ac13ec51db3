/** Tokens of Google, from servers that check what they are sent as those of Google do. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { generateKeyPairSync, verify } from "node:crypto"
import { repository } from "../../../../../test/fixtures/repository.ts"
import * as LocalServer from "../http/LocalServer.fixture.ts"
import * as GoogleCredentials from "./GoogleCredentials.ts"

const keys = generateKeyPairSync("rsa", { modulusLength: 2048 })
const privateKey = keys.privateKey.export({ type: "pkcs8", format: "pem" }).toString()

const issued = { access_token: "a-token", expires_in: 3599, token_type: "Bearer" }

/** A token endpoint, and a function that finds the credentials of a file for it. */
const tokens = Effect.fnUntraced(function* (answer: (form: URLSearchParams) => LocalServer.LocalReply) {
  const fixture = yield* repository
  const server = yield* LocalServer.make((request) => {
    expect([request.method, request.path]).toEqual(["POST", "/token"])
    expect(request.headers["content-type"]).toBe("application/x-www-form-urlencoded")
    return answer(new URLSearchParams(request.body))
  })
  const endpoint = `${server.origin}/token`
  const find = (document: object) =>
    Effect.suspend(() => {
      fixture.write("google.json", JSON.stringify({ token_uri: endpoint, ...document }))
      return GoogleCredentials.find({ GOOGLE_APPLICATION_CREDENTIALS: `${fixture.path}/google.json` })
    })
  return { find, endpoint, server }
})

const decoded = (part = "") => JSON.parse(Buffer.from(part, "base64url").toString())

describe("a service account", () => {
  it.live("signs an assertion (RFC 7523), and gets a token for an hour", () =>
    Effect.gen(function* () {
      const now = Date.now()
      const { find, endpoint } = yield* tokens((form) => {
        expect(form.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer")
        const [header, claims, signature = ""] = (form.get("assertion") ?? "").split(".")
        const signed = Buffer.from(`${header}.${claims}`)
        expect(verify("RSA-SHA256", signed, keys.publicKey, Buffer.from(signature, "base64url"))).toBe(true)
        expect(decoded(header)).toEqual({ alg: "RS256", typ: "JWT", kid: "key-1" })
        const { iat, exp, ...others } = decoded(claims)
        expect(others).toEqual({
          iss: "nereid@project.iam.gserviceaccount.com",
          aud: endpoint,
          scope: "https://www.googleapis.com/auth/devstorage.read_only",
        })
        expect(exp - iat).toBe(3600)
        expect(Math.abs(iat * 1000 - now)).toBeLessThan(30_000)
        return LocalServer.json(issued)
      })
      const { value, expiresAt = 0 } = yield* find({
        type: "service_account",
        client_email: "nereid@project.iam.gserviceaccount.com",
        private_key_id: "key-1",
        private_key: privateKey,
      })
      expect(value).toBe("a-token")
      expect(Math.abs(expiresAt - now - 3_599_000)).toBeLessThan(30_000)
    }),
  )

  it.live("has a key that is no key, or that the endpoint refuses: denied, without the key", () =>
    Effect.gen(function* () {
      const { find, server } = yield* tokens(() =>
        LocalServer.json({ error: "invalid_grant", error_description: "Invalid JWT Signature." }, 400),
      )
      const account = { type: "service_account", client_email: "a@b" }
      const problemOf = (key: string) => Effect.flip(find({ ...account, private_key: key }))
      const problem = yield* problemOf("a-secret")
      expect(problem).toMatchObject({ kind: "denied", code: "InvalidCredentials" })
      expect(problem.message).not.toContain("a-secret")
      expect(server.requests).toHaveLength(0)
      expect(yield* problemOf(privateKey)).toMatchObject({
        kind: "denied",
        code: "invalid_grant",
        message: "Invalid JWT Signature.",
      })
    }),
  )
})

describe("an authorized user", () => {
  it.live("exchanges the refresh token", () =>
    Effect.gen(function* () {
      const fields = { client_id: "client", client_secret: "a=b&c", refresh_token: "1//refresh" }
      const { find } = yield* tokens((form) => {
        expect(Object.fromEntries(form)).toEqual({ grant_type: "refresh_token", ...fields })
        return LocalServer.json(issued)
      })
      expect((yield* find({ type: "authorized_user", ...fields })).value).toBe("a-token")
    }),
  )

  it.live("is read from the folder of gcloud if no variable names a file", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const server = yield* LocalServer.make(() => LocalServer.json(issued))
      const document = { type: "authorized_user", refresh_token: "r", token_uri: server.origin }
      fixture.write("application_default_credentials.json", JSON.stringify(document))
      expect((yield* GoogleCredentials.find({ CLOUDSDK_CONFIG: fixture.path })).value).toBe("a-token")
    }),
  )
})

describe("the metadata server", () => {
  const find = (host: string) => GoogleCredentials.find({ CLOUDSDK_CONFIG: "/nowhere", GCE_METADATA_HOST: host })

  it.live("gives the token of the machine", () =>
    Effect.gen(function* () {
      const server = yield* LocalServer.make(({ method, path, headers }) => {
        const isRight = headers["metadata-flavor"] === "Google" && method === "GET"
        if (!isRight || path !== "/computeMetadata/v1/instance/service-accounts/default/token") return { status: 403 }
        return LocalServer.json(issued)
      })
      expect((yield* find(server.origin.replace("http://", ""))).value).toBe("a-token")
    }),
  )

  it.live("is not there: requests are anonymous", () =>
    Effect.gen(function* () {
      const { value, expiresAt } = yield* find("127.0.0.1:1")
      expect([value, expiresAt]).toEqual([undefined, undefined])
    }),
  )
})

it.live("a file of another type is named", () =>
  Effect.gen(function* () {
    const { find } = yield* tokens(() => ({}))
    const { message } = yield* Effect.flip(find({ type: "external_account" }))
    expect(message).toContain("google.json has type 'external_account', expected service_account or authorized_user")
  }),
)
