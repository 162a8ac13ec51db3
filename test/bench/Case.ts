/** A benchmark case, its environment, and its line in the table. */
import type { Child } from "./Child.ts"
import type { Settings } from "./Comparison.ts"

/** Modules that run as a child process. */
export type Program =
  | "server"
  | "echo"
  | "json"
  | "events"
  | "pipeline"
  | "grpc-js"
  | "session"
  | "fixed-replies"
  | "client"
  | "raw-client"

/** The environment of a case. */
export interface Bench {
  readonly settings: Settings
  /** Starts a program on the server's core or on the load's. */
  readonly start: (
    program: Program,
    place?: "server" | "load" | "both",
    nodeOptions?: ReadonlyArray<string>,
  ) => Promise<Child>
}

/** A line of the table. Pairs are `Nereid / baseline`. */
export interface Result {
  readonly lines: ReadonlyArray<string>
  /** The figure that the target applies to; empty if the lines are the whole result. */
  readonly reached: string
  /** Undefined without a target. */
  readonly met: boolean | undefined
  readonly cpu: string
  /** The 50th, 99th and 99.9th percentile of both sides, in milliseconds. */
  readonly latency: string
  readonly busy: string
  readonly other: string
  readonly errors: ReadonlyArray<string>
  readonly notes: ReadonlyArray<string>
}

export interface Case {
  readonly name: string
  readonly description: string
  readonly baseline: string
  readonly target: string
  readonly run: (bench: Bench) => Promise<Result>
}
