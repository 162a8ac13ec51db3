/**
 * Memory of a large message, with inputs of its request. The transport frees it behind the response, unless code may
 * keep views of it. Memory of a request that has waited for long is not collected with the young: a collection of the
 * whole heap, for some dozens of such messages, costs more than a copy of each. So code gets copies of these inputs,
 * and views of others.
 */
export interface MessageMemory {
  /** Whether code gets copies. The first answer holds for all executions of a request. */
  readonly isCopied: () => boolean
}
