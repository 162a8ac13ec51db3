/** The views of the page, in the order of the navigation. */
import type { ComponentType } from "preact"
import { ApiView } from "../openapi/ApiView.tsx"
import { LiveView } from "../live/LiveView.tsx"
import { LogView } from "../log/LogView.tsx"
import { ModelsView } from "../models/ModelsView.tsx"
import { ModelView } from "../models/ModelView.tsx"

export interface View {
  /** First part of the route. */
  readonly path: string
  readonly title: string
  readonly component: ComponentType
}

export const views: ReadonlyArray<View> = [
  { path: "models", title: "Models", component: ModelsView },
  { path: "live", title: "Live", component: LiveView },
  { path: "log", title: "Log", component: LogView },
  { path: "api", title: "API", component: ApiView },
]

/** The view of a route. `#/models/{name}/{version}` is one model. */
export const viewOf = (parts: ReadonlyArray<string>): View => {
  const [first = "models", name] = parts
  const view = views.find(({ path }) => path === first) ?? { path: "models", title: "Models", component: ModelsView }
  return view.path === "models" && name !== undefined ? { path: "models", title: name, component: ModelView } : view
}
