/**
 * Execution providers: the parts of ONNX Runtime that run a graph on some device, as a user lists them and as the
 * runtime wants them. Effect-free: the worker reads it too.
 */

export type ProviderName = "cpu" | "webgpu" | "cuda" | "tensorrt"

/** Execution provider: its name for device 0, or with the id of another device. */
export type Provider = ProviderName | { readonly name: ProviderName; readonly deviceId?: number }

export const name = (provider: Provider): ProviderName => (typeof provider === "string" ? provider : provider.name)

/** Formats a provider for messages, such as `cuda:1`. */
export const print = (provider: Provider): string =>
  typeof provider === "string" || provider.deviceId === undefined
    ? name(provider)
    : `${provider.name}:${provider.deviceId}`
