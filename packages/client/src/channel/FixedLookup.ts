/** Connects sockets to an address that is already known, under the name of its host. */
import { isIPv6, type LookupFunction } from "node:net"

/** Options of a socket; empty without an address. */
export const fixedLookup = (ip: string | undefined): { readonly lookup?: LookupFunction } => {
  if (ip === undefined) return {}
  const family = isIPv6(ip) ? 6 : 4
  return {
    lookup: (_, { all }, found) => (all === true ? found(null, [{ address: ip, family }]) : found(null, ip, family)),
  }
}
