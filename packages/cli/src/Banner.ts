/**
 * Text printed at the start: a table of the models, the server's addresses, and an example request for each ready
 * model.
 */
import type { Server } from "@nereid/server"
import type { IndexEntry } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { print, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { curl } from "./Curl.ts"

/** `tls` names the ports that speak it. */
export const banner = (server: Server.Server["Service"], tls: Server.ServerOptions["tls"] = {}): string => {
  const { http, grpc, port, metrics } = server
  const lines = [models(server), ""]
  const reasons = server.index().flatMap(reasonOf)
  if (reasons.length > 0) lines.push(...reasons, "")
  if (grpc !== undefined) lines.push(`Started GRPCInferenceService at ${grpc.host}:${grpc.port}`)
  if (http !== undefined) lines.push(`Started HTTPService at ${http.host}:${http.port}`)
  if (port !== undefined) lines.push(`Started HTTPService and GRPCInferenceService at ${port.host}:${port.port}`)
  if (metrics !== undefined) lines.push(`Started Metrics Service at ${metrics.host}:${metrics.port}`)
  const curlUrl = http === undefined ? port && url(port, tls.port) : url(http, tls.http)
  if (curlUrl !== undefined) {
    const ready = server
      .index()
      .flatMap((entry) => (entry.state === "READY" ? (found(entry, server.models) ?? []) : []))
    const requests = newest(ready).flatMap((model) => curl(model, curlUrl) ?? [])
    if (requests.length > 0) lines.push("", "Try:", ...requests.map((request) => `  ${request}`))
  }
  return lines.join("\n")
}

/** Every model there is, as a table. */
export const models = ({ index, models }: Pick<Server.Server["Service"], "index" | "models">): string => {
  const heads = ["MODEL", "VERSION", "STATUS", "MAX BATCH", "INPUTS", "OUTPUTS"]
  const rows = index().map((entry) => row(entry, models))
  return table(heads, rows)
}

/** The one of each name that a request without a version is for. */
const newest = (models: ReadonlyArray<RunningModel>): ReadonlyArray<RunningModel> =>
  models.filter(
    ({ description: { name, version } }) =>
      !models.some((other) => other.description.name === name && Number(other.description.version) > Number(version)),
  )

const url = ({ host, port }: Server.Address, tls: Server.Tls | undefined): string => {
  const everywhere = host === "0.0.0.0" || host === "::"
  const name = everywhere ? "localhost" : host.includes(":") ? `[${host}]` : host
  return `${tls === undefined ? "http" : "https"}://${name}:${port}`
}

const found = (entry: IndexEntry, models: ReadonlyArray<RunningModel>): RunningModel | undefined =>
  models.find(({ description: { name, version } }) => name === entry.name && version === entry.version)

/** A model that is not there has no more than its status. */
const row = (entry: IndexEntry, models: ReadonlyArray<RunningModel>) => {
  const { name, version = "-", state } = entry
  const model = found(entry, models)
  const status = [name, version, state ?? "not loaded"]
  if (model === undefined) return [...status, "", "", ""]
  const {
    description: { maxBatchSize, signature },
  } = model
  return [
    ...status,
    String(maxBatchSize),
    signature.inputs.map(tensor).join(", "),
    signature.outputs.map(tensor).join(", "),
  ]
}

/** Below the table, which long texts would make unreadable. */
const reasonOf = ({ name, version, state, reason = "" }: IndexEntry): ReadonlyArray<string> =>
  reason === "" ? [] : [`${name}${version === undefined ? "" : ` version ${version}`} is ${state}: ${reason}`]

/** Formats a tensor, with a question mark if it is optional. */
const tensor = ({ name, datatype, dims, optional }: TensorSpec): string =>
  `${name}${optional ? "?" : ""} ${print(datatype, dims)}`

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((cells) => cells[column]?.length ?? 0)))
  const line = (cells: ReadonlyArray<string>) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n")
}
