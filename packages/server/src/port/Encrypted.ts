/** Tells a socket with TLS from one without. The class of such sockets would load TLS into servers that have none. */
import type { Socket } from "node:net"
import type { TLSSocket } from "node:tls"

export const isEncrypted = (socket: Socket): socket is TLSSocket => "encrypted" in socket
