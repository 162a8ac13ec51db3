/** The end of a process that serves. */
import { Cause, Exit, Runtime } from "effect"

/**
 * How the process ends, for `NodeRuntime.runMain(program, { teardown: Server.teardown })`: a stop by SIGTERM or SIGINT is
 * a success, exit code 0, unless something has set `process.exitCode`, as a server does that stops because a model of it
 * cannot recover. Effect's own default for an interrupted program is 130.
 */
export const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
    ? onExit(Number(process.exitCode ?? 0))
    : Runtime.defaultTeardown(exit, onExit)
