/** Tokens of identities of Azure, from servers that check what they are sent as those of Azure do. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { repository } from "../../../../../test/fixtures/repository.ts"
import * as LocalServer from "../http/LocalServer.fixture.ts"
import * as AzureCredentials from "./AzureCredentials.ts"

const find = (environment: Readonly<Record<string, string>>) =>
  AzureCredentials.find({ AZURE_STORAGE_AUTH_TYPE: "managed_identity", ...environment }, "account")

const near = (time: number | undefined, expected: number) =>
  expect(Math.abs((time ?? 0) - expected)).toBeLessThan(30_000)

describe("a managed identity", () => {
  it.live("of a virtual machine has a token of its metadata service", () =>
    Effect.gen(function* () {
      const server = yield* LocalServer.make(({ method, path, query, headers }) => {
        expect([method, path, headers["metadata"]]).toEqual(["GET", "/metadata/identity/oauth2/token", "true"])
        expect(Object.fromEntries(query)).toEqual({
          "api-version": "2018-02-01",
          resource: "https://storage.azure.com",
          client_id: "client",
        })
        return LocalServer.json({ access_token: "a-token", expires_in: "86399", token_type: "Bearer" })
      })
      const { value, expiresAt } = yield* find({
        AZURE_POD_IDENTITY_AUTHORITY_HOST: server.origin,
        AZURE_STORAGE_CLIENT_ID: "client",
      })
      expect(value).toEqual({ type: "token", token: "a-token" })
      near(expiresAt, Date.now() + 86_399_000)
    }),
  )

  it.live("of an app service has one that tells the time of its expiry", () =>
    Effect.gen(function* () {
      const expiresOn = Math.floor(Date.now() / 1000) + 7200
      const server = yield* LocalServer.make(({ path, query, headers }) => {
        expect([path, headers["x-identity-header"]]).toEqual(["/msi/token", "secret"])
        expect(query.get("api-version")).toBe("2019-08-01")
        return LocalServer.json({ access_token: "a-token", expires_on: String(expiresOn) })
      })
      const endpoint = { IDENTITY_ENDPOINT: `${server.origin}/msi/token`, IDENTITY_HEADER: "secret" }
      near((yield* find(endpoint)).expiresAt, expiresOn * 1000)
    }),
  )

  it.live("that does not exist is denied", () =>
    Effect.gen(function* () {
      const server = yield* LocalServer.make(() =>
        LocalServer.json({ error: "invalid_request", error_description: "Identity not found" }, 400),
      )
      const problem = yield* Effect.flip(find({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.origin }))
      expect(problem).toMatchObject({ kind: "denied" })
      expect(problem.message).toBe(`${server.origin} has refused the identity: invalid_request`)
    }),
  )
})

it.live("a workload identity exchanges the token of its file, which is read each time", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    const server = yield* LocalServer.make(({ method, path, body }) => {
      expect([method, path]).toEqual(["POST", "/tenant/oauth2/v2.0/token"])
      const { client_assertion: assertion, ...others } = Object.fromEntries(new URLSearchParams(body))
      expect(others).toEqual({
        grant_type: "client_credentials",
        client_id: "client",
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        scope: "https://storage.azure.com/.default",
      })
      return LocalServer.json({ access_token: `for ${assertion}`, expires_in: 3600 })
    })
    for (const assertion of ["first", "second"]) {
      fixture.write("token", `${assertion}\n`)
      const { value } = yield* find({
        AZURE_AUTHORITY_HOST: `${server.origin}/`,
        AZURE_TENANT_ID: "tenant",
        AZURE_CLIENT_ID: "client",
        AZURE_FEDERATED_TOKEN_FILE: `${fixture.path}/token`,
      })
      expect(value).toEqual({ type: "token", token: `for ${assertion}` })
    }
  }),
)

it.live("a type of credentials that does not exist is named", () =>
  Effect.gen(function* () {
    const { message } = yield* Effect.flip(find({ AZURE_STORAGE_AUTH_TYPE: "magic" }))
    expect(message).toBe("AZURE_STORAGE_AUTH_TYPE is 'magic', expected managed_identity or default")
  }),
)
