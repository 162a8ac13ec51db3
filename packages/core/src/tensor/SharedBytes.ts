/**
 * Bytes of a tensor in a file of shared memory, for executors that map the file and do not receive the bytes.
 * SharedTensor.ts makes such tensors.
 */
export interface SharedBytes {
  /** Path by which another process of this user opens the file. */
  readonly path: string
  /** Number of the file, by which that process knows it from another one under this path. */
  readonly inode: number
  /** In bytes, from the start of the file. */
  readonly offset: number
  readonly length: number
  /**
   * Copies the bytes.
   * @throws Error if the file has become shorter
   */
  readonly read: () => Uint8Array
  /** Keeps the path valid until the result is called. */
  readonly hold: () => () => void
}

const known = new WeakMap<object, SharedBytes>()

/** The shared bytes of a tensor; undefined for one in the memory of this process. */
export const of = (tensor: object): SharedBytes | undefined => known.get(tensor)

export const set = (tensor: object, bytes: SharedBytes): void => void known.set(tensor, bytes)

/** Number of bytes of a tensor, without reading them. */
export const lengthOf = (tensor: { readonly bytes: Uint8Array }): number =>
  known.get(tensor)?.length ?? tensor.bytes.length
