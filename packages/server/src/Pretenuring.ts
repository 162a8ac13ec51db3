/**
 * V8's guess which objects will live long, from those made at the same place before: these it puts where only full collections
 * look. In a server of short requests it guesses wrong. Tables of node:http2 that have been replaced keep the streams they
 * held, and these what was made for them, until the next full collection; seeing them survive, V8 takes all of their kind
 * for old, and from then on they are. Without the guess a small gRPC request leaves a tenth of the bytes behind, and costs
 * 12 % less (docs/performance.md).
 */
import { setFlagsFromString } from "node:v8"

/** For the whole process, from now on. */
export const turnOff = (): void => setFlagsFromString("--no-allocation-site-pretenuring")
