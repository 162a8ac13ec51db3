/**
 * The URLs of replicas: a list of servers, or a name whose addresses are the replicas: `dns:///models:8001` as in gRPC,
 * or `dns+https://models` for another protocol.
 */
import { Result } from "effect"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"

/** Longest list. */
const maxServers = 1_000

/** Whether a URL stands for the addresses of a name. */
export const isName = (url: string): boolean => /^dns(\+[a-z]+)?:/i.test(url)

const invalid = (url: string, problem: string) =>
  Result.fail(new ServerUrl.InvalidUrl({ url, message: `${JSON.stringify(url)} ${problem}` }))

/** Parses a URL with a name. */
export const parseName = (url: string): Result.Result<ServerUrl.ServerUrl, ServerUrl.InvalidUrl> => {
  const [, scheme, authority = "", rest = ""] = /^dns(?:\+([a-z]+))?:\/\/([^/]*)\/?(.*)$/is.exec(url) ?? []
  if (scheme !== undefined) return named(url, `${scheme}://${url.slice(url.indexOf("//") + 2)}`)
  if (rest === "" || authority !== "") {
    return invalid(url, "has no name where one is expected: write dns:///models:8001, with three slashes")
  }
  return named(url, `grpc://${rest}`)
}

const named = (url: string, server: string) =>
  Result.mapError(ServerUrl.parse(server), ({ message }) => {
    const problem = message.slice(message.lastIndexOf("model server: ") + "model server: ".length)
    return new ServerUrl.InvalidUrl({
      url,
      message: `${JSON.stringify(url)} is not the name of model servers: ${problem}`,
    })
  })

const empty = Result.fail(new ServerUrl.InvalidUrl({ url: "", message: "The list of URLs is empty." }))

/** Parses a list. `assumed` is the protocol of URLs without a scheme. */
export const parseList = (
  urls: ReadonlyArray<string>,
  assumed?: ServerUrl.Protocol,
): Result.Result<readonly [ServerUrl.ServerUrl, ...Array<ServerUrl.ServerUrl>], ServerUrl.InvalidUrl> => {
  if (urls.length > maxServers) {
    return invalid(urls[0] ?? "", `is one of ${urls.length} URLs, but a list has at most ${maxServers}`)
  }
  const servers: Array<ServerUrl.ServerUrl> = []
  const known = new Set<string>()
  for (const url of urls) {
    if (isName(url)) return invalid(url, "stands for all addresses of a name, and cannot be part of a list")
    const server = ServerUrl.parse(url, assumed)
    if (Result.isFailure(server)) return Result.fail(server.failure)
    const address = ServerUrl.address(server.success)
    if (known.has(address)) return invalid(url, `lists the server ${address} a second time`)
    known.add(address)
    servers.push(server.success)
  }
  const [first, ...others] = servers
  return first === undefined ? empty : Result.succeed([first, ...others])
}
