/** The header `content-type` of gRPC calls. */

/** Messages in the server's default encoding, which is protobuf. */
export const plain = "application/grpc"

/** Messages in protobuf, by name. */
export const protobuf = `${plain}+proto`

/** Whether a request is gRPC, in any encoding; gRPC-Web is one of them. */
export const isGrpc = (contentType: string | undefined): boolean => contentType?.startsWith(plain) === true

/** Whether requests or responses of this content type are plain gRPC; gRPC-Web and other encodings are not. */
export const isPlain = (contentType: string): boolean =>
  contentType === plain || /^application\/grpc(?:\+proto)?(?:$|;)/.test(contentType)
