/** The part of a document about the routes of the server's owner, which take one sample of a model as plain JSON. */
import { Components } from "@nereid/core/internal/openapi/Components"
import type { JsonSample } from "@nereid/core/internal/openapi/JsonSample"
import * as ModelSchemas from "@nereid/core/internal/openapi/ModelSchemas"
import * as SampleSchemas from "@nereid/core/internal/openapi/SampleSchemas"
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as EventStream from "./EventStream.ts"
import * as InferencePaths from "./InferencePaths.ts"
import { json, success } from "./Operation.ts"
import { body, type PlacedOperation } from "./ProtocolPaths.ts"
import { safeName } from "./SafeName.ts"

/** A route of the server's owner. */
export interface OwnRoute {
  readonly path: string
  readonly sample: JsonSample
}

export interface RoutePaths {
  readonly operations: ReadonlyArray<PlacedOperation>
  readonly schemas: { readonly [name: string]: SchemaObject }
}

export const tag = "routes"

/** `model`: the model that a route reaches now, if it is there. */
export const make = (
  routes: ReadonlyArray<OwnRoute>,
  model: (route: OwnRoute) => RunningModel | undefined,
): RoutePaths => {
  let schemas: { readonly [name: string]: SchemaObject } = {}
  const operations = routes.map((route, index): PlacedOperation => {
    const { path, sample } = route
    const { name, version } = sample.definition
    const components = new Components(`Route${index + 1}`)
    const { request, response } = SampleSchemas.make(sample, components)
    const running = model(route)
    const isStream = running?.calls.decoupled === true
    const errors = running === undefined ? [] : ModelSchemas.errors(running.description, components)
    schemas = { ...schemas, ...components.schemas }
    return {
      path,
      method: "post",
      operation: {
        operationId: `route_${safeName(path.slice(1))}`,
        summary: `Call model ${name}`,
        tags: [tag],
        api: "inference",
        model: { name, version },
        parameters: [InferencePaths.timeout],
        requestBody: body(request, true),
        responses: {
          ...(isStream ? EventStream.responses(response) : success("Response", json(response))),
          ...ErrorResponses.ofModel(InferencePaths.generateErrors, isStream, errors),
        },
      },
    }
  })
  return { operations, schemas }
}
