/** Header fields of a successful reply, in the form that this version of Node sends fastest. */
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import type { OutgoingHttpHeaders } from "node:http2"

/** Node does not copy an array, as it does an object. Node 22.19, 23 and 24.0 to 24.6 accept only objects. */
export const make = (version: string): OutgoingHttpHeaders | ReadonlyArray<string> =>
  acceptsArrays(version)
    ? [":status", "200", "content-type", GrpcContentType.protobuf]
    : { ":status": 200, "content-type": GrpcContentType.protobuf }

/** https://nodejs.org/api/http2.html#http2streamrespondheaders-options */
const acceptsArrays = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major === 22) return minor >= 20
  return major > 24 || (major === 24 && minor >= 7)
}
