/** Public API: `Cluster.layer` serves a sequence model as sharded entities; `SequenceStore` has their states. */
export * as Cluster from "./Cluster.ts"
export * as SequenceStore from "./SequenceStore.ts"
