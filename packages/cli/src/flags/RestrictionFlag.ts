/** The flag of one port that restricts APIs, in tritonserver's format: `api[,api…]:key=value`. */
import * as RestrictedApis from "@nereid/server/internal/gateway/RestrictedApis"
import { Result } from "effect"
import * as FlagKind from "./FlagKind.ts"

export const make = (name: string, port: "http" | "grpc", header: string) =>
  FlagKind.collected(
    name,
    {
      takes: "api,…:key=value",
      description: `Require ${header} in requests to these APIs; repeatable`,
      display: RestrictedApis.withoutValue,
    },
    (text) => Result.mapError(RestrictedApis.parse(text, port), ({ message }) => `${expected}; ${message}`),
  )

const expected = `api[,api…]:key=value, where an API is one of ${RestrictedApis.apis.join(", ")}`
