/**
 * One line of how Triton's Python backend behaves, by a label such as `P2.args.name`. Its numbers are those of the
 * sections:
 *
 *   P1   detection, import, processes
 *   P2   life cycle: completion, initialize, execute, decoupled models, rescheduling, readiness, finalize
 *   P3   the API of triton_python_backend_utils
 *   P4   the configuration: environments, settings, backends in Python
 *   P5   death and hangs
 *   P6   calls of other models
 *
 * A case names the lines that it proves, and runs over each transport. A test elsewhere names them in a comment:
 * `P3.tensor.name@local`, or with `@HTTP`, `@gRPC`, or `@both` for HTTP and gRPC.
 */
import type { Transport } from "../PythonClient.ts"

/** Where a line shows. `local`: in the process of the model or at its load, on no transport. */
export type Face = Transport | "local"

export interface PythonLine {
  readonly text: string
  readonly faces: ReadonlyArray<Face>
  /** Why no transport carries it; undefined for the others. */
  readonly reason?: string
}

/** The faces of a label's suffix. */
export const facesOf: Readonly<Record<string, ReadonlyArray<Face>>> = {
  both: ["HTTP", "gRPC"],
  HTTP: ["HTTP"],
  gRPC: ["gRPC"],
  local: ["local"],
}

type Labelled = readonly [label: string, line: PythonLine]

type Texts = Readonly<Record<string, string>>

/** Lines that clients notice over HTTP and gRPC. */
export const wired = (texts: Texts): ReadonlyArray<Labelled> =>
  Object.entries(texts).map(([label, text]) => [label, { text, faces: ["HTTP", "gRPC"] }])

/** Lines that show over gRPC alone. */
export const onlyGrpc = (texts: Texts): ReadonlyArray<Labelled> =>
  Object.entries(texts).map(([label, text]) => [label, { text, faces: ["gRPC"] }])

/** Lines that no transport carries, for this reason. */
export const local = (reason: string, texts: Texts): ReadonlyArray<Labelled> =>
  Object.entries(texts).map(([label, text]) => [label, { text, faces: ["local"], reason }])
