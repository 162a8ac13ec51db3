/**
 * Checks that a file declares the same contracts as the generated ones. The check compares declarations, not text. A
 * file may be reformatted and commented, and may be more precise than its source (texts for BYTES, names of dimensions,
 * labels).
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect } from "effect"
import { compare, print } from "@nereid/core/internal/contract/ContractDifference"
import * as ContractExtension from "@nereid/core/internal/contract/ContractExtension"
import { isModel } from "@nereid/core/internal/lifecycle/ExportedModels"
import * as ModelModule from "../module/ModelModule.ts"
import type { FoundContract } from "./FoundContract.ts"
import { GenerateError } from "./GenerateError.ts"

/** `isComplete`: whether all is there that the file may declare. */
export const check = Effect.fn("ContractCheck.check")(function* (
  file: string,
  found: ReadonlyArray<FoundContract>,
  isComplete: boolean,
): Effect.fn.Return<void, GenerateError> {
  if (!existsSync(file)) return yield* new GenerateError({ message: `cannot check ${file}: the file does not exist` })
  const exported = yield* Effect.mapError(
    ModelModule.exported(resolve(file)),
    ({ message }) => new GenerateError({ message }),
  )
  const declared = [...new Set(Object.values(exported))].filter(isModel).map(({ definition }) => definition)
  const differences = found.flatMap(({ sourceContract, entry }) => {
    const definition = declared.find(({ name }) => name === sourceContract.name)
    if (definition === undefined) return [`model '${sourceContract.name}': not declared`]
    const { version } = entry
    const isOther = version !== undefined && definition.version !== String(version)
    return [
      ...(isOther ? [`model '${sourceContract.name}': declared version ${definition.version}, found ${version}`] : []),
      ...compare(ContractExtension.declared(definition), sourceContract, "same").map((difference) =>
        difference.of === "model" ? print(difference) : `model '${sourceContract.name}', ${print(difference)}`,
      ),
    ]
  })
  const others = (isComplete ? declared : [])
    .filter(({ name }) => !found.some(({ sourceContract }) => sourceContract.name === name))
    .map(({ name }) => `model '${name}': declared, but not found`)
  const all = [...differences, ...others]
  if (all.length === 0) return
  const lines = all.map((difference) => `\n  ${difference}`).join("")
  const [{ entry } = { entry: { source: "nothing" } }] = found
  return yield* new GenerateError({
    message: `${file} differs from the contracts of ${found.length > 1 ? "its source" : entry.source}:${lines}`,
  })
})
