/** What users import: the vocabulary of models and tensors. Inside the repository, import the module itself. */
export * as Errors from "./Errors.ts"
export * as Logits from "./Logits.ts"
export * as Metrics from "./Metrics.ts"
export * as Model from "./Model.ts"
export * as Tensor from "./Tensor.ts"
export { type HandledRequest, RequestContext } from "./RequestContext.ts"
export { type BuiltInstance, InstanceContext } from "./InstanceContext.ts"
export { Registry } from "./Registry.ts"
