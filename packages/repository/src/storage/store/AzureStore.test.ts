/** Azure Blob Storage, against a server that checks signatures, tokens and conditions. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as LocalServer from "../http/LocalServer.fixture.ts"
import { AzureStore } from "./AzureStore.ts"
import { contentsOf } from "./Downloads.fixture.ts"
import * as FakeAzure from "./FakeAzure.fixture.ts"

const { account, key, token } = FakeAzure

const large = "0123456789".repeat(250)

const fixture = Effect.gen(function* () {
  const fake = yield* FakeAzure.make
  const open = (environment: Readonly<Record<string, string>>, signature = "") => {
    const all = { AZURE_STORAGE_BLOB_ENDPOINT: fake.endpoint, ...environment }
    const place = { account, host: "nowhere", container: "models", path: "path" }
    return new AzureStore({ ...place, signature, environment: Effect.succeed(all) })
  }
  fake.blobs.set("path/m/config.pbtxt", "name: 'm'")
  fake.blobs.set("path/m #é+%&/1/model.onnx", large)
  fake.blobs.set("other/x", "not of this repository")
  return { fake, open }
})

const expected = [
  ["m/config.pbtxt", "name: 'm'"],
  ["m #é+%&/1/model.onnx", large],
]

describe("a container of Azure", () => {
  it.live("is listed in pages and read in ranges, each signed with the key", () =>
    Effect.gen(function* () {
      const { fake, open } = yield* fixture
      expect([...(yield* contentsOf(open({ AZURE_STORAGE_KEY: key })))]).toEqual(expected)
      const ranges = fake.requests.map(({ headers }) => headers.range).filter((range) => range !== undefined)
      expect(ranges.toSorted()).toEqual(["bytes=0-999", "bytes=1000-1999", "bytes=2000-2499"])
    }),
  )

  it.live("is signed for the account of a variable rather than that of the URL", () =>
    Effect.gen(function* () {
      const { open } = yield* fixture
      const problem = yield* Effect.flip(open({ AZURE_STORAGE_KEY: key, AZURE_STORAGE_ACCOUNT: "other" }).list)
      expect(problem).toMatchObject({ kind: "denied", code: "AuthenticationFailed", message: "it is so" })
    }),
  )

  it.live("accepts a shared access signature, of the URL or of a variable, as it is", () =>
    Effect.gen(function* () {
      const { fake, open } = yield* fixture
      const signature = "sv=2021-12-02&sig=a%2Bsignature%2F%3D"
      expect([...(yield* contentsOf(open({ AZURE_STORAGE_KEY: key }, signature)))]).toEqual(expected)
      expect([...(yield* contentsOf(open({ AZURE_STORAGE_SAS_TOKEN: `?${signature}` })))]).toEqual(expected)
      for (const { target, headers } of fake.requests) {
        expect(target).toContain(signature)
        expect(headers.authorization).toBeUndefined()
      }
    }),
  )

  it.live("refuses a wrong key, and requests without credentials", () =>
    Effect.gen(function* () {
      const { open } = yield* fixture
      const denied = { kind: "denied", code: "AuthenticationFailed", message: "it is so" }
      const wrong = Buffer.from("another key").toString("base64")
      expect(yield* Effect.flip(open({ AZURE_STORAGE_KEY: wrong }).list)).toMatchObject(denied)
      expect(yield* Effect.flip(open({}).list)).toMatchObject(denied)
    }),
  )

  it.live("has another object than the listing: changed, or missing", () =>
    Effect.gen(function* () {
      const { fake, open } = yield* fixture
      const store = open({ AZURE_STORAGE_KEY: key })
      const [object] = yield* store.list
      if (object === undefined) throw new Error("the listing is empty")
      const problem = Effect.flip(store.get(object, undefined, async () => undefined))
      fake.blobs.set(`path/${object.key}`, "new")
      expect(yield* problem).toMatchObject({ kind: "changed", code: "ConditionNotMet" })
      fake.blobs.clear()
      expect(yield* problem).toMatchObject({ kind: "missing", code: "BlobNotFound" })
    }),
  )
})

describe("an identity of Azure", () => {
  it.live("is accepted as a token", () =>
    Effect.gen(function* () {
      const { fake, open } = yield* fixture
      const environment = { AZURE_STORAGE_AUTH_TYPE: "managed_identity", IDENTITY_HEADER: "secret" }
      const issuer = yield* LocalServer.make(() => LocalServer.json({ access_token: token, expires_in: "3600" }))
      const store = open({ ...environment, IDENTITY_ENDPOINT: `${issuer.origin}/token` })
      expect([...(yield* contentsOf(store))]).toEqual(expected)
      expect(fake.requests.every(({ headers }) => headers.authorization === `Bearer ${token}`)).toBe(true)
    }),
  )
})
