/** Address of a server, and how to open a socket to it. */
import { once } from "node:events"
import { connect as connectTcp, type Socket } from "node:net"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export interface Address {
  /** A name or an IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** Speaks TLS where it is there; what it holds is passed on to Node's. */
  readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key" | "rejectUnauthorized" | "servername">
}

export const print = ({ host, port }: Address): string => `${host.includes(":") ? `[${host}]` : host}:${port}`

export const scheme = ({ tls }: Address): "http" | "https" => (tls === undefined ? "http" : "https")

/** Milliseconds until a server that says nothing counts as unreachable. */
const connectTimeout = 10_000

/** @throws Error where there is no such server, or one that speaks none of the protocols (ALPN) */
export const connect = async (address: Address, protocol: "h2" | "http/1.1"): Promise<Socket> => {
  const { host, port, tls } = address
  const socket =
    tls === undefined
      ? connectTcp({ host, port, noDelay: true })
      : connectTls({ host, port, ...tls, ALPNProtocols: [protocol] })
  const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${connectTimeout} ms`)), connectTimeout)
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

/** In words. A name with several addresses fails with one error for each, in one without a message. */
export const reason = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reason).join(", ")
  return errorMessage(error)
}
