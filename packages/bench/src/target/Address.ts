/** Address of a server, and how to open a socket to it. */
import { once } from "node:events"
import { connect as connectTcp, type Socket } from "node:net"
import type { ConnectionOptions } from "node:tls"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Host and port of a server. With `tls`, connections use TLS. */
export interface Address {
  /** Host name or IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** TLS options for Node. Without them, the connection is plaintext. */
  readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key" | "rejectUnauthorized" | "servername">
}

export const print = ({ host, port }: Address): string => `${host.includes(":") ? `[${host}]` : host}:${port}`

export const scheme = ({ tls }: Address): "http" | "https" => (tls === undefined ? "http" : "https")

/** Connect timeout, in milliseconds. */
const connectTimeout = 10_000

/** @throws Error if the server is unreachable or supports none of the protocols (ALPN) */
export const connect = async (address: Address, protocol: "h2" | "http/1.1"): Promise<Socket> => {
  const { host, port, tls } = address
  const socket =
    tls === undefined
      ? connectTcp({ host, port, noDelay: true })
      : process.getBuiltinModule("node:tls").connect({ host, port, ...tls, ALPNProtocols: [protocol] })
  const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${connectTimeout} ms`)), connectTimeout)
  try {
    await once(socket, tls === undefined ? "connect" : "secureConnect")
  } catch (error) {
    throw new Error(`cannot connect to ${print(address)}: ${reason(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
  socket.setNoDelay(true)
  if (protocol === "h2" && "alpnProtocol" in socket && socket.alpnProtocol !== protocol) {
    socket.destroy()
    throw new Error(`${print(address)} does not speak HTTP/2 over TLS`)
  }
  return socket
}

/**
 * Returns the message of an error. A host with several addresses fails with an error for each, in one without a
 * message.
 */
export const reason = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reason).join(", ")
  return errorMessage(error)
}
