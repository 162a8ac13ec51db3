/** A server of Node's on a free port of this machine, for the baselines. */
import type { AddressInfo, Server } from "node:net"

export const listen = (server: Server): Promise<number> => {
  const { promise, resolve } = Promise.withResolvers<number>()
  server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  return promise
}
