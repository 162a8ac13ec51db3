/** Lines of calls of other models. */
import { local, wired } from "./PythonLine.ts"

export const calls = [
  ...wired({
    "P6.exec": "exec reaches ONNX, TypeScript and Python models",
    "P6.version": "and a version of them",
    "P6.async": "async_exec: several at once",
    "P6.many": "more than 32 wait for each other",
    "P6.error.value": "a failed call is a response with has_error(), not an exception",
    "P6.error.unknown": "`Model m - Error when running inference: Request for unknown model: 'm' is not found`",
    "P6.error.not-ready": "`Failed for execute the inference request. Model 'm' is not ready.`",
    "P6.error.inputs": "wrong inputs: `expected 2 inputs but got 1 inputs for model …`",
    "P6.error.outputs": "unknown outputs",
    "P6.error.decoupled": "a decoupled model needs `'decoupled=True'`",
    "P6.error.code": "the code of the called model is kept",
    "P6.error.iterator": "with decoupled=True, the error is an item",
    "P6.decoupled.one": "decoupled=True of another model gives one response",
    "P6.decoupled.several": "and of a decoupled one, its responses",
    "P6.empty": "tensors without elements pass",
    "P6.batch": "calls share the batches of their model",
    "P6.count": "and are counted there",
    "P6.forward.id": "request_id, correlation_id, flags, timeout and parameters are forwarded",
    "P6.timeout.expired": "a timeout that passes in the queue is an error of the call",
    "P6.trace": "trace=request.trace(): a span below that of the request",
    "P6.cancel": "a caller that leaves does not cancel the calls of its request",
    "P6.lock": "exec lets other threads of the process run",
    "P6.recursion": "a model may call itself while it has a free instance",
    "P6.cycle": "a cycle without one is an error (Triton: waits for ever)",
    "P6.fork": "processes that the code forks call too",
    "P6.phase": "`BLS is only supported during the 'execute' function.`",
    "P6.sync-decoupled": "async_exec in a synchronous decoupled model (Triton: not supported)",
    "P6.parameters": "parameters of the response are those of the called model",
  }),
  ...local("the requests are made and limited in the process", {
    "P6.limit": "calls beyond the limit of a process wait for a reply",
  }),
]
