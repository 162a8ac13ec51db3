/** Lines of single requests: the parameters of a sequence, and what is refused in which order. */
import { lines } from "./SequenceLine.ts"

export const requests = lines({
  all: {
    "L1.3.no-id": "0, an empty string and no id are no sequence",
    "L1.3.id-types":
      "an id is an integer of 64 bits (of gRPC's int64_param, a negative one is its counterpart) or a string",
    "L1.3.id-kinds": "a number and its digits as a string are different ids",
    "L1.3.id-length": "a string has at most 128 bytes",
    "L1.4.rows": "first, a batch beyond max_batch_size is refused",
    "L1.4.id-type": "then an id of another type than its control, with the id of the request",
    "L1.4.batch": "then a batch of several rows",
    "L1.4.no-id": "then a request without an id",
    "L1.4.stopping": "then a START while the server stops",
    "L1.4.not-started": "then a request to an unknown id without START",
    "L1.4.not-counted": "these count as no failure",
    "L1.4.ensemble": "in an ensemble, its name precedes the text",
  },
  HTTP: {
    "L1.3.http-id-wrong": "a negative number, a fraction and a boolean are refused (Triton: with 500)",
    "L1.3.generate": "generate takes the parameters of a sequence (Triton: it ignores them)",
    "L1.3.extension": "the server tells of the extension `sequence`",
  },
  gRPC: {
    "L1.3.grpc-id-wrong": "a uint64_param and any other are refused",
  },
  both: {
    "L1.3.flag-wrong": "a flag that is no boolean is refused in Triton's words of the protocol",
    "L1.4.status": "the status is INVALID_ARGUMENT or 400",
  },
})
