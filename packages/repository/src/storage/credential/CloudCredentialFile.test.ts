/** The file of Triton with credentials for several repositories. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { repository } from "../../../../../test/fixtures/repository.ts"
import * as CloudCredentialFile from "./CloudCredentialFile.ts"

const fixture = Effect.map(repository, (folder) => {
  const apply = (kind: CloudCredentialFile.CredentialKind, url: string, more: Readonly<Record<string, string>> = {}) =>
    Effect.map(
      CloudCredentialFile.apply({ TRITON_CLOUD_CREDENTIAL_PATH: `${folder.path}/file`, ...more }, kind, url),
      (found) => Object.fromEntries(Object.entries(found).filter(([name]) => !name.startsWith("TRITON_"))),
    )
  return { write: (document: unknown) => folder.write("file", JSON.stringify(document)), apply }
})

it.live("the longest beginning of the URL counts, and replaces the variables of credentials", () =>
  Effect.gen(function* () {
    const { write, apply } = yield* fixture
    write({
      s3: {
        "": { profile: "other" },
        "s3://bucket": { key_id: "short", secret_key: "s" },
        "s3://bucket/models": { key_id: "long", secret_key: "l", region: "eu-west-1", session_token: "t" },
        "s3://bucket/models/other": { key_id: "longer" },
      },
    })
    const own = { AWS_ACCESS_KEY_ID: "own", AWS_PROFILE: "own", AWS_ENDPOINT_URL: "http://127.0.0.1:1" }
    expect(yield* apply("s3", "s3://bucket/models", own)).toEqual({
      AWS_ACCESS_KEY_ID: "long",
      AWS_SECRET_ACCESS_KEY: "l",
      AWS_SESSION_TOKEN: "t",
      AWS_REGION: "eu-west-1",
      AWS_ENDPOINT_URL: "http://127.0.0.1:1",
    })
    expect(yield* apply("s3", "s3://bucket/x")).toMatchObject({ AWS_ACCESS_KEY_ID: "short" })
    expect(yield* apply("s3", "s3://another", own)).toMatchObject({ AWS_PROFILE: "other" })
  }),
)

it.live("it has files of Google, and accounts of Azure", () =>
  Effect.gen(function* () {
    const { write, apply } = yield* fixture
    write({
      gs: { "gs://bucket": "/secrets/google.json" },
      as: { "as://account": { account_str: "a", account_key: "k", auth_type: "managed_identity", client_id: "c" } },
    })
    expect(yield* apply("gs", "gs://bucket/path", { GOOGLE_APPLICATION_CREDENTIALS: "/own" })).toEqual({
      GOOGLE_APPLICATION_CREDENTIALS: "/secrets/google.json",
    })
    expect(yield* apply("as", "as://account/models", { AZURE_STORAGE_SAS_TOKEN: "own" })).toEqual({
      AZURE_STORAGE_ACCOUNT: "a",
      AZURE_STORAGE_KEY: "k",
      AZURE_STORAGE_AUTH_TYPE: "managed_identity",
      AZURE_STORAGE_CLIENT_ID: "c",
    })
  }),
)

it.live("the file that the guide shows is one", () =>
  Effect.gen(function* () {
    const { write, apply } = yield* fixture
    const guide = readFileSync(join(import.meta.dirname, "../../../../../docs/guides/object-storage.md"), "utf8")
    write(JSON.parse(/^```json\n([^]*?)^```/m.exec(guide)?.[1] ?? ""))
    expect(yield* apply("s3", "s3://bucket/models")).toEqual({
      AWS_ACCESS_KEY_ID: "…",
      AWS_SECRET_ACCESS_KEY: "…",
      AWS_REGION: "eu-west-1",
    })
    expect(yield* apply("s3", "s3://another")).toEqual({ AWS_PROFILE: "other" })
    expect(yield* apply("gs", "gs://any")).toEqual({ GOOGLE_APPLICATION_CREDENTIALS: "/secrets/google.json" })
    expect(yield* apply("as", "as://account/models")).toEqual({
      AZURE_STORAGE_ACCOUNT: "account",
      AZURE_STORAGE_KEY: "…",
    })
  }),
)

it.live("it is read each time, and a repository without an entry is denied with Triton's text", () =>
  Effect.gen(function* () {
    const { write, apply } = yield* fixture
    write({ s3: { "s3://one": { key_id: "first" } } })
    expect(yield* apply("s3", "s3://one/x")).toEqual({ AWS_ACCESS_KEY_ID: "first" })
    write({ s3: { "s3://one": { key_id: "second" } } })
    expect(yield* apply("s3", "s3://one/x")).toEqual({ AWS_ACCESS_KEY_ID: "second" })
    const problem = yield* Effect.flip(apply("s3", "s3://two"))
    expect(problem).toMatchObject({ kind: "denied", message: "Cannot match credential for path  s3://two" })
    write("no object")
    expect((yield* Effect.flip(apply("s3", "s3://one"))).message).toContain("is not a JSON object")
  }),
)
