/**
 * Execution providers: the parts of ONNX Runtime that run a graph on some device, as a user lists them and as the runtime
 * wants them. Effect-free: the worker reads it too.
 */

export type ProviderName = "cpu" | "webgpu" | "cuda" | "tensorrt"

/** A provider by its name, on device 0, or on the device with that id. */
export type Provider = ProviderName | { readonly name: ProviderName; readonly deviceId?: number }

export const name = (provider: Provider): ProviderName => (typeof provider === "string" ? provider : provider.name)

/** `cuda:1`, for messages. */
export const print = (provider: Provider): string =>
  typeof provider === "string" || provider.deviceId === undefined
    ? name(provider)
    : `${provider.name}:${provider.deviceId}`
