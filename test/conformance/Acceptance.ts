/**
 * The acceptance list: what a client of Triton sees, in short. Its labels, C1 to C40, are used all over the tests: a
 * case of this folder lists in `proves` the lines that it proves, and other tests name a line in a title or in a
 * comment, such as "(C38)". Acceptance.test.ts fails if a line is named nowhere.
 */
export const lines = {
  C1: "health and readiness by status, with empty bodies",
  C2: "server metadata with its extensions",
  C3: "model metadata: string versions, platform, BYTES, leading -1, and the declared contract if it says more",
  C4: "the normalised model configuration",
  C5: 'errors as {"error"} with their status; 404 and 405',
  C6: "any Content-Type; types of responses",
  C7: "JSON inference, flat and nested; order of the response; id",
  C8: "the binary extension, both ways, mixed, and its length errors",
  C9: "raw binary requests and their three refusals",
  C10: "BYTES: length prefixes, empty, NUL, not UTF-8",
  C11: "FP16 and BF16: binary fine, JSON refused",
  C12: "64-bit extremes, NaN and infinities survive JSON",
  C13: "gzip and deflate, 415 for others",
  C14: "the body limit, also after decompression",
  C15: "malformed JSON and wrong types: 400 (500 for an extent) and their texts",
  C16: "unknown model or version 404, not ready 503",
  C17: "missing, unexpected and duplicate inputs and outputs",
  C18: "wrong datatype, shape, batch, byte size, element count",
  C19: "optional inputs",
  C20: "classification, both protocols, batched, labels",
  C21: "request parameters, refused names, forwarded headers",
  C22: "all RPCs and Health/Check",
  C23: "raw and typed contents, not mixed",
  C24: "messages over 4 MB",
  C25: "unary inference of a decoupled model",
  C26: "streams: order, errors in band, half-close",
  C27: "final responses and triton_grpc_error",
  C28: "cancellation, deadlines and disconnects",
  C29: "keepalive, compression, TLS, restricted APIs",
  C30: "/generate",
  C31: "/generate_stream",
  C32: "the repository's index, load and unload, and their refusal",
  C33: "loading with a configuration and with files; a failed reload keeps what was there",
  C34: "version policies, the default version, polling",
  C35: "configurations completed from ONNX files, or absent",
  C36: "a full queue, a timeout, batches in the statistics",
  C37: "ensembles: their steps, optional inputs, decoupled ones",
  C38: "statistics and metrics",
  C39: "shared memory, logging and trace settings",
  C40: "SIGTERM, exit code, default ports",
} as const

export type Line = keyof typeof lines
