/**
 * One line of how Triton's sequences behave, by a label such as `L1.5.timeout`. Its numbers are those of the sections:
 *
 *   L1   sequence batching: configuration (1.1, 1.2), parameters (1.3), refusals (1.4), life (1.5), batches (1.6, 1.7),
 *        statistics (1.8), ensembles and streams (1.9), variables for tests (1.10)
 *   L2   implicit state
 *   L3   iterative sequences
 *   L4   the rate limiter
 *
 * A test names a line and where it proves it: `L1.5.timeout@all`, or with `@HTTP`, `@gRPC`, `@stream`, `@command`,
 * `@both` for HTTP and gRPC, `@grpc` for gRPC and its streams. Scenarios list lines in `proves`.
 */

/** Where a caller notices a line; `stream` is ModelStreamInfer. */
export type Face = "HTTP" | "gRPC" | "stream" | "command"

export interface SequenceLine {
  readonly text: string
  readonly faces: ReadonlyArray<Face>
  /** An equal claim of RepositoryLines.ts, or a model of StoredRefusals.ts, whose cases prove it over HTTP and gRPC. */
  readonly sameAs?: string
}

/** The faces of a label's suffix. */
export const facesOf: Readonly<Record<string, ReadonlyArray<Face>>> = {
  all: ["HTTP", "gRPC", "stream"],
  both: ["HTTP", "gRPC"],
  grpc: ["gRPC", "stream"],
  HTTP: ["HTTP"],
  gRPC: ["gRPC"],
  stream: ["stream"],
  command: ["command"],
}

/** Lines by their labels, of a table by suffixes. */
export const lines = (
  table: Readonly<Record<string, Readonly<Record<string, string | readonly [text: string, sameAs: string]>>>>,
): ReadonlyArray<readonly [label: string, line: SequenceLine]> =>
  Object.entries(table).flatMap(([suffix, texts]) =>
    Object.entries(texts).map(([label, given]) => {
      const faces = facesOf[suffix] ?? []
      const [text, sameAs] = typeof given === "string" ? [given] : given
      return [label, sameAs === undefined ? { text, faces } : { text, faces, sameAs }] as const
    }),
  )
