/** The header `content-type` of gRPC calls whose messages are protobuf. */

/** Whether requests or responses of this content type are plain gRPC; gRPC-Web and other encodings are not. */
export const isPlain = (contentType: string): boolean =>
  contentType === "application/grpc" || /^application\/grpc(?:\+proto)?(?:$|;)/.test(contentType)
