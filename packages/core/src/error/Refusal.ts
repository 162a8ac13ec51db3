/** Errors with which a model rejects requests, in the protocol's terms. */
import { ModelNotReady, Unavailable } from "./InferenceError.ts"

/** The error of a version that is loading, draining or failed, or without an available instance. */
export const notReady = ({ name, version }: { readonly name: string; readonly version: string }): ModelNotReady =>
  new ModelNotReady({ message: `Request for unknown model: '${name}' version ${version} is not at ready state` })

/** The model, or its server, is stopping. */
export const stopping = (): Unavailable =>
  new Unavailable({ message: "Server is stopping, scheduler for model has stopped accepting new inference requests" })

/**
 * Makes an error without a stack, which costs several times the rest of it: an overloaded server refuses more requests
 * than it answers.
 */
export const withoutStack = <E extends Error>(make: () => E): E => {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return make()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

const shared = new WeakSet<Error>()

/** Makes an error with which many requests end, so that a transport keeps its bytes. */
export const sharedRefusal = <E extends Error>(make: () => E): E => {
  const error = withoutStack(make)
  shared.add(error)
  return error
}

export const isShared = (error: Error): boolean => shared.has(error)
