/** URLs of repositories: Triton's forms, and what is refused. */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as StorageUrl from "./StorageUrl.ts"

const parsed = (text: string) => Result.getOrThrow(StorageUrl.parse(text))
const problem = (text: string) => Result.merge(StorageUrl.parse(text))

describe("a URL", () => {
  it.each([
    ["s3://bucket/path", { bucket: "bucket", path: "path", endpoint: undefined, shown: "s3://bucket/path" }],
    ["s3://bucket", { bucket: "bucket", path: "", shown: "s3://bucket" }],
    ["s3://bucket//a///b/", { path: "a/b", shown: "s3://bucket/a/b" }],
    ["s3://host:4572/demo-bucket1.0/a", { endpoint: "http://host:4572", bucket: "demo-bucket1.0", path: "a" }],
    ["s3://http://127.0.0.1:9000/bucket/a/b", { endpoint: "http://127.0.0.1:9000", bucket: "bucket", path: "a/b" }],
    ["s3://https://host:443/bucket/a", { endpoint: "https://host:443", shown: "s3://https://host:443/bucket/a" }],
    ["s3://[::1]:9000/bucket/a", { endpoint: "http://[::1]:9000", bucket: "bucket" }],
    ["gs://bucket/a/Model_repo-1.0", { kind: "gs", bucket: "bucket", path: "a/Model_repo-1.0" }],
    ["as://account/container/a", { account: "account", host: "account.blob.core.windows.net", path: "a" }],
    ["as://account.blob.core.chinacloudapi.cn/c/a", { account: "account", host: "account.blob.core.chinacloudapi.cn" }],
    ["as://account/container/a?sv=1&sig=secret", { signature: "sv=1&sig=secret", shown: "as://account/container/a" }],
    ["hf://org/model", { model: "org/model", revision: "main", path: "" }],
    ["hf://org/model@v1.0/a/b", { model: "org/model", revision: "v1.0", path: "a/b" }],
    ["hf://org/model@refs%2Fpr%2F1/a", { revision: "refs/pr/1", path: "a" }],
  ])("%s", (text, expected) => {
    expect(parsed(text)).toMatchObject(expected)
  })
})

it.each([
  ["s3://", "No bucket name found in path: s3://"],
  ["s3://host:9000", "No bucket name found in path: s3://http://host:9000"],
  ["s3://http://host/bucket", "Invalid endpoint in URL: 's3://http://host/bucket', expected a host and a port"],
  ["s3://user:password@host:9000/bucket", "Invalid bucket name: 'user:password@host:9000'"],
  ["s3://My_Bucket/a", "Invalid bucket name: 'My_Bucket'"],
  ["s3://bucket/a/../b", "Invalid path in URL: 's3://bucket/a/../b'"],
  ["gs://", "No bucket name found in path: gs://"],
  ["as://account", "Invalid azure storage path: as://account"],
  ["as://account/Container", "Invalid azure storage path: as://account/Container"],
  ["as://account.evil.example/container", "Invalid azure storage path: as://account.evil.example/container"],
  ["hf://org", "Invalid Hugging Face path: hf://org, expected hf://organization/model[@revision][/path]"],
  ["hf://org/model@", "Invalid Hugging Face path: hf://org/model@, expected hf://organization/model[@revision][/path]"],
  ["http://host/a", "'http://' is not supported, expected a directory, or s3://, gs://, as:// or hf://"],
])("%s is refused", (text, message) => {
  expect(problem(text)).toBe(message)
})

it("a path is not a URL", () => {
  expect(["models", "/models", "C:\\models", "./s3:/a"].map(StorageUrl.isUrl)).toEqual([false, false, false, false])
  expect(StorageUrl.isUrl("S3://bucket")).toBe(true)
})
