/** The public exports: the vocabulary of models and tensors. Inside the repository, import the module itself. */
export * as Errors from "./Errors.ts"
export * as Logits from "./tensor/Logits.ts"
export * as Metrics from "./metrics/HandlerMetrics.ts"
export * as Model from "./Model.ts"
export * as Tensor from "./Tensor.ts"
export { type HandledRequest, RequestContext } from "./handler/RequestContext.ts"
export { type BuiltInstance, InstanceContext } from "./instance/InstanceContext.ts"
export { Registry } from "./lifecycle/Registry.ts"
