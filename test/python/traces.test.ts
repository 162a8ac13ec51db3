/** Traces of calls by models in Python, whose requests came over HTTP and over gRPC. */
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Context, Effect, Layer, Tracer } from "effect"
import { expect, it, describe, onTestFinished } from "vitest"
import { connect } from "../../packages/server/src/grpc/GrpcClient.fixture.ts"
import { python } from "../fixtures/python.ts"
import { parentOf, recorder } from "../fixtures/spans.ts"
import * as GrpcClient from "./GrpcClient.ts"
import * as HttpClient from "./HttpClient.ts"
import { dataOf } from "./PythonCase.ts"
import { transports } from "./PythonClient.ts"
import { scoped, text, texts, write } from "./PythonRepository.ts"

const anywhere = { host: "127.0.0.1", port: 0 }

describe.skipIf(python === undefined)("traces", () => {
  // P6.trace@both P3.request.trace@both
  it.each(transports)(
    "of calls with the trace of a request are below its span, others begin a trace, %s",
    async (transport) => {
      const { tracer, only, named } = recorder()
      const fixture = await write({
        bls: { file: "triton_sync", config: texts },
        called: { file: "triton_sync", config: texts },
      })
      const { http, grpc } = await scoped(
        Layer.build(
          Server.layer([], { http: anywhere, grpc: anywhere, metrics: false }).pipe(
            Layer.provide(Repository.layer({ directories: [fixture.path], exitOnError: false })),
            Layer.provide(Layer.succeed(Tracer.Tracer, tracer)),
          ),
        ).pipe(Effect.map((context) => Context.get(context, Server.Server))),
      )
      const { rpc, close } = connect(`http://127.0.0.1:${grpc?.port}`)
      onTestFinished(close)
      const client = transport === "HTTP" ? HttpClient.make(`http://127.0.0.1:${http?.port}`) : GrpcClient.make(rpc)
      const call = async (more: string): Promise<string> => {
        const code = `tensor = pb.Tensor("IN", np.array(["return 1"], dtype=np.object_))
given = dict(model_name="called", inputs=[tensor], requested_output_names=["OUT"])
pb.InferenceRequest(**given${more}).exec()
return request.trace().get_context()`
        return String(dataOf(await client.infer("bls", [text("IN", code)]))?.[0])
      }
      const context = await call(", trace=request.trace()")
      const caller = only("infer bls")
      expect(JSON.parse(context)).toEqual({ traceparent: `00-${caller.traceId}-${caller.spanId}-01` })
      const callee = only("infer called")
      expect([callee.traceId, parentOf(callee)]).toEqual([caller.traceId, caller.spanId])
      await call("")
      const [, other] = named("infer called")
      expect(other && parentOf(other)).toBe(undefined)
    },
  )
})
