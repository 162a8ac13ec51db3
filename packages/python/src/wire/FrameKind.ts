/** The kinds of frames between the server and a model process, on both of their sockets. */

/** Kinds on the data socket. */
export const EXECUTE = 1
export const RETURNED = 2
export const RESPONSE = 3

/** Kinds on the control socket, from the server. LOG_LEVEL comes on the data socket too, SEQUENCE_ENDED there alone. */
export const START = 10
export const CHECK_READY = 11
export const CANCEL = 12
export const STOP = 13
export const REPLY = 14
export const SHARED = 15
export const LOG_LEVEL = 17
export const DUMP_STACKS = 18
export const SEQUENCE_ENDED = 19
export const CREDIT = 20

/** Kinds on the control socket, from the process. */
export const LISTENING = 29
export const STARTED = 30
export const READY = 31
export const CALL = 32
export const STOPPED = 33
export const LOG = 34
export const STACKS = 35
export const CANCEL_CALL = 36
export const CONTROL_MODEL = 37
export const METRIC = 38
export const CREDIT_CALL = 39
