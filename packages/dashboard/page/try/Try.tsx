/** A form for one request to a model, made of its contract, and its answers. */
import type { Model } from "../api/Model.ts"

export const Try = ({ model }: { readonly model: Model }) => <p>{model.name}</p>
