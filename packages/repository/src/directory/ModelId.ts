/**
 * Identifies a model of the repositories. With namespaces, several models may have one name, in different directories;
 * the id then begins with the directory, as in Triton's messages.
 */
export interface ModelId {
  /** Unique among all models of the server. */
  readonly id: string
  /** Name that callers use. */
  readonly name: string
  /** Directory of the repository; undefined without namespaces. */
  readonly namespace: string | undefined
}

/** Without a namespace, the name is the id. */
export const make = (name: string, namespace: string | undefined): ModelId => ({
  id: namespace === undefined ? name : `${namespace}::${name}`,
  name,
  namespace,
})
