/**
 * Storage for sequences on their way between runners. `layerSql` keeps them in the database of the cluster;
 * `layerMemory` is for tests and for a cluster of one process.
 */
export {
  type OwnedPart,
  SequenceStore,
  SequenceStoreError,
  type StoredSequence,
  StoreTaken,
} from "./store/SequenceStore.ts"
export { layer as layerMemory } from "./store/MemoryStore.ts"
export { layer as layerSql, type SqlStoreOptions } from "./store/SqlStore.ts"
