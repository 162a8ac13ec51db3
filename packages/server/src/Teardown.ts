/** The end of a process that serves. */
import { Cause, Exit, Runtime } from "effect"

/**
 * Teardown for `NodeRuntime.runMain(program, { teardown: Server.teardown })`. A stop by SIGTERM or SIGINT exits with 0,
 * or with `process.exitCode` if set, as after an unrecoverable model error. Effect's default for an interrupted program
 * is 130.
 */
export const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
    ? onExit(Number(process.exitCode ?? 0))
    : Runtime.defaultTeardown(exit, onExit)
