/** Flags of `nereid bench` for the content of requests. */
import { readFileSync } from "node:fs"
import type { BenchmarkOptions } from "@nereid/bench/internal/benchmark/Benchmark"
import type { Parameter } from "@nereid/core/internal/request/Request"
import { Effect, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

const parseShape: FlagKind.Parse<readonly [string, ReadonlyArray<number>]> = (text) => {
  const [, name, extents] = /^(.+):(\d{1,15}(?:,\d{1,15})*)$/.exec(text) ?? []
  if (name === undefined || extents === undefined) return Result.fail("name:extent,extent,…")
  return Result.succeed([name, extents.split(",").map(Number)])
}

const parseParameter: FlagKind.Parse<readonly [string, Parameter]> = (text) => {
  const [, name = "", value = "", type = "string"] = /^([^:]+):(.*?)(?::(bool|int|double|string))?$/.exec(text) ?? []
  const read = (): Parameter | undefined => {
    switch (type) {
      case "bool":
        return Result.getOrElse(FlagKind.parseBoolean(value), () => undefined)
      case "int":
        return /^[+-]?\d{1,19}$/.test(value) ? BigInt(value) : undefined
      case "double":
        return value !== "" && Number.isFinite(Number(value)) ? Number(value) : undefined
      default:
        return value
    }
  }
  const parameter = read()
  if (name === "" || parameter === undefined) return Result.fail("name:value:type, of type bool, int, double or string")
  return Result.succeed([name, parameter])
}

export const flags = {
  batchSize: FlagKind.withDefault(
    "batch-size",
    { takes: "integer", aliases: ["b"], description: "Rows in each request, for models that batch" },
    1,
    FlagKind.parseInteger({ minimum: 1 }),
  ),
  shapes: FlagKind.collected(
    "shape",
    {
      takes: "name:extent,…",
      description: "Shape of an input with dynamic dimensions, with or without the batch dimension; repeatable",
    },
    parseShape,
  ),
  inputs: FlagKind.withDefault(
    "input-data",
    {
      takes: "random|zero|path",
      description: 'Input values: random, zero, or a JSON file with {"inputs": […]} or in the format of perf_analyzer',
    },
    "random",
    Result.succeed,
  ),
  text: FlagKind.optional(
    "string-data",
    { takes: "text", description: "Value of every BYTES element", fallback: "random letters" },
    Result.succeed,
  ),
  textLength: FlagKind.integer("string-length", "Length of random BYTES elements, in letters", 128, { minimum: 0 }),
  variants: FlagKind.integer("variants", "Number of different random requests to send in turn", 1, {
    minimum: 1,
    maximum: 10_000,
  }),
  seed: FlagKind.integer("seed", "Seed for random inputs and send times", 1, { minimum: 0 }),
  parameters: FlagKind.collected(
    "request-parameter",
    {
      takes: "name:value:type",
      description: "Parameter of every request, of type bool, int, double or string; repeatable",
    },
    parseParameter,
  ),
  checkLengths: FlagKind.boolean(
    "check-lengths",
    "Require responses of equal length; ignored for JSON tensors and decoupled models",
    true,
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

type Options = Pick<BenchmarkOptions, "inputs" | "seed" | "parameters" | "checkLengths">

/** Fails if a file cannot be read. */
export const options = (values: Values): Effect.Effect<Options, CliError.UserError> => {
  const { inputs, batchSize, text, textLength, variants, seed, parameters, checkLengths } = values
  const common = { seed, parameters: Object.fromEntries(parameters), checkLengths }
  if (inputs === "random" || inputs === "zero") {
    const shapes = new Map(values.shapes)
    return Effect.succeed({
      ...common,
      inputs: { synthetic: { values: inputs, batchSize, shapes, text, textLength, variants } },
    })
  }
  return Effect.try({
    try: () => ({ ...common, inputs: { file: readFileSync(inputs, "utf8") } }),
    catch: (error) => new CliError.UserError({ cause: `--input-data: ${errorMessage(error)}` }),
  })
}
