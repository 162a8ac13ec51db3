/** The error codes of HTTP/2 (RFC 9113, 7), and the two kinds of errors. */
export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const

const names = new Map<number, string>(Object.entries(ErrorCode).map(([name, code]) => [code, name]))

/** Returns the name of an error code, for messages. */
export const errorName = (code: number): string => names.get(code) ?? `error code ${code}`

/** Ends a connection (RFC 9113, 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}
