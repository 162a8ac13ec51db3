/**
 * Memory of a large message, with inputs of its request. Code that may keep inputs gets copies where the request has
 * waited for long, and its transport frees the message behind the response. Such memory is not collected with the
 * young, and a collection of the whole heap for some dozens of messages costs more than their copies. Otherwise code
 * gets views, and the memory is left to the garbage collector.
 */
export interface MessageMemory {
  /** Whether code gets copies. The first answer holds for all executions of the request. */
  readonly isCopied: () => boolean
}
