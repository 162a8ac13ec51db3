/** Error and option types of `Client.layer`. Nothing runs: `tsc` is the test. */
import type { Layer } from "effect"
import { expectTypeOf, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
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
