/** Error and option types of `Client.layer`. Nothing runs: `tsc` is the test. */
import type { Layer } from "effect"
import { expectTypeOf, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import * as BrowserClient from "./BrowserClient.ts"
import * as Client from "./Client.ts"

class Double extends Model.Service<Double>()("double", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { Y: Tensor.scalar("FP32") },
}) {}

const url = "http://localhost"
declare const some: Client.ClientOptions

it("fails for an invalid URL, and where it verifies", () => {
  expectTypeOf(() => Client.layer(Double, { url })).returns.toEqualTypeOf<Layer.Layer<Double, Client.InvalidUrl>>()
  expectTypeOf(() => Client.layer(Double, { url, verify: false })).returns.toEqualTypeOf<
    Layer.Layer<Double, Client.InvalidUrl>
  >()
  expectTypeOf(() => Client.layer(Double, { url, verify: true })).returns.toEqualTypeOf<
    Layer.Layer<Double, Client.InvalidUrl | Client.VerificationError>
  >()
  // It may be true.
  expectTypeOf(() => Client.layer(Double, some)).returns.toEqualTypeOf<
    Layer.Layer<Double, Client.InvalidUrl | Client.VerificationError>
  >()
})

it("refuses an unknown option", () => {
  // @ts-expect-error
  expectTypeOf(() => Client.layer(Double, { url, verfy: true })).toBeFunction()
  // @ts-expect-error
  expectTypeOf(() => Client.layer(Double, { url, verify: "yes" })).toBeFunction()
  // @ts-expect-error
  expectTypeOf(() => Client.layer(Double, {})).toBeFunction()
})

it("takes several replicas, and hedges only idempotent models", () => {
  expectTypeOf(() => Client.layer(Double, { url: [url, url] })).returns.toEqualTypeOf<
    Layer.Layer<Double, Client.InvalidUrl>
  >()
  const hedge = { after: "50 millis" } as const
  expectTypeOf(() => Client.layer(Double, { url, replicas: { idempotent: true, hedge } })).toBeFunction()
  // @ts-expect-error: both replicas may execute the request
  expectTypeOf(() => Client.layer(Double, { url, replicas: { hedge } })).toBeFunction()
  // @ts-expect-error
  expectTypeOf(() => Client.connect(Double, { url, replicas: { idempotent: false, hedge } })).toBeFunction()
  // @ts-expect-error: one or the other
  expectTypeOf<{ after: "1 second"; percentile: 95 }>().toExtend<Client.HedgeOptions>()
  // @ts-expect-error
  expectTypeOf(() => Client.connect(Double, { url, replicas: { retries: 3 } })).toBeFunction()
  // @ts-expect-error: a transport has one server
  expectTypeOf(() => Client.transport({ url: [url] })).toBeFunction()
})

it("has no connections and names in a browser", () => {
  expectTypeOf(() => BrowserClient.connect(Double, { url: [url], replicas: { idempotent: true } })).toBeFunction()
  // @ts-expect-error
  expectTypeOf(() => BrowserClient.connect(Double, { url: [url], replicas: { connections: 2 } })).toBeFunction()
  // @ts-expect-error
  expectTypeOf(() => BrowserClient.connect(Double, { url: [url], replicas: { lookupInterval: 1 } })).toBeFunction()
})
