/** The status codes of gRPC other than OK, by their names in the specification. */
export const GrpcCode = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const

const names = new Map<number, string>(Object.entries(GrpcCode).map(([name, code]) => [code, name]))

/** The name of a code, OK for 0. Returns undefined for a code that the specification does not have. */
export const codeName = (code: number): string | undefined => (code === 0 ? "OK" : names.get(code))
