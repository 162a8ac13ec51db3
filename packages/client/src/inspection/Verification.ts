/**
 * Verifies once that the server's model matches the declaration: compares the contract with the metadata, and with the
 * configuration if available. Later changes go unnoticed here; OutputCheck.ts checks every reply.
 */
import { Effect } from "effect"
import { compare, ContractMismatch, print } from "@nereid/core/internal/contract/ContractDifference"
import * as ContractExtension from "@nereid/core/internal/contract/ContractExtension"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { InferenceError } from "@nereid/core/Errors"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import * as Inspection from "./Inspection.ts"

/** ContractMismatch, or the InferenceError of an unreachable server or an unready model. */
export type VerificationError = ContractMismatch | InferenceError

/** Errors that options with `verify` add; never without it. */
export type Errors<Options> = "verify" extends keyof Options
  ? Options["verify"] extends false | undefined
    ? never
    : VerificationError
  : never

export const check = (
  definition: Definition<Fields, Fields>,
  settings: ClientSettings,
): Effect.Effect<void, VerificationError> =>
  Effect.gen(function* () {
    const { name } = definition
    const inspection = yield* Inspection.make(settings)
    const { contract } = yield* Inspection.contract(inspection, name)
    yield* inspection.ready(name)
    const differences = compare(ContractExtension.declared(definition), contract, "callable")
    if (differences.length === 0) return
    const lines = differences.map((difference) => `\n  ${print(difference)}`)
    const message = `model '${name}' at ${ServerUrl.address(settings.endpoint)} differs from its declaration:${lines.join("")}`
    return yield* new ContractMismatch({ model: name, differences, message })
  }).pipe(Effect.scoped)
