/** Signatures that AWS has published: of its test suite for version 4, and of the examples in the manual of S3. */
import { describe, expect, it } from "@effect/vitest"
import type { Query } from "../http/Encoding.ts"
import * as AwsSignature from "./AwsSignature.ts"

const signatureOf = (authorization: string) => /Signature=(.*)$/.exec(authorization)?.[1]

describe("the test suite of version 4", () => {
  const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" }
  const scope = { region: "us-east-1", service: "service", time: Date.UTC(2015, 7, 30, 12, 36) }
  const headers = { host: "example.amazonaws.com", "x-amz-date": "20150830T123600Z" }
  const payload = AwsSignature.sha256("")
  const cases: ReadonlyArray<readonly [name: string, method: string, query: Query, signature: string]> = [
    ["get-vanilla", "GET", [], "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
    [
      "get-vanilla-query-order-key-case",
      "GET",
      [
        ["Param2", "value2"],
        ["Param1", "value1"],
      ],
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ],
    [
      "get-vanilla-empty-query-key",
      "GET",
      [["Param1", "value1"]],
      "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
    ],
    ["post-vanilla", "POST", [], "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
  ]

  it.each(cases)("%s", (_, method, query, signature) => {
    const authorization = AwsSignature.authorization({ method, path: "/", query, headers, payload }, keys, scope)
    expect(authorization).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=${signature}`,
    )
  })
})

describe("the examples of S3", () => {
  const keys = { accessKeyId: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" }
  const scope = { region: "us-east-1", service: "s3", time: Date.UTC(2013, 4, 24) }
  const payload = AwsSignature.sha256("")
  const common = { host: "examplebucket.s3.amazonaws.com", "x-amz-content-sha256": payload }
  const headers = { ...common, "x-amz-date": AwsSignature.timestamp(scope.time) }

  it("an object, in a range", () => {
    const request = {
      method: "GET",
      path: "/test.txt",
      query: [],
      headers: { ...headers, range: "bytes=0-9" },
      payload,
    }
    expect(signatureOf(AwsSignature.authorization(request, keys, scope))).toBe(
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    )
  })

  it("a listing", () => {
    const query = [
      ["max-keys", "2"],
      ["prefix", "J"],
    ] as const
    const authorization = AwsSignature.authorization({ method: "GET", path: "/", query, headers, payload }, keys, scope)
    expect(signatureOf(authorization)).toBe("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
  })

  it("a query without a value", () => {
    const query = [["lifecycle", ""]] as const
    const authorization = AwsSignature.authorization({ method: "GET", path: "/", query, headers, payload }, keys, scope)
    expect(signatureOf(authorization)).toBe("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
  })
})
