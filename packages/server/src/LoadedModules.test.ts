/** Which modules of Node and of other packages the start of a server loads, in a process of its own. */
import { execFileSync } from "node:child_process"
import { expect, it } from "vitest"

/** Starts a server with a model in code, sends it a request over HTTP, and returns the modules that are loaded then. */
const loaded = (then: string): ReadonlyArray<string> => {
  const program = `
    import { registerHooks } from "node:module"
    const packages = new Set()
    registerHooks({
      load: (url, context, next) => {
        packages.add(url.split("/node_modules/").at(-1).split("/").slice(0, 2).join("/"))
        return next(url, context)
      },
    })
    const { Model, Tensor } = await import(${JSON.stringify(import.meta.resolve("@nereid/core"))})
    const { Server } = await import(${JSON.stringify(import.meta.resolve("@nereid/server"))})
    const { Effect } = await import("effect")
    class Echo extends Model.Service()("echo", { inputs: { X: Tensor.scalar("FP32") }, outputs: { X: Tensor.scalar("FP32") } }) {}
    const port = { host: "127.0.0.1", port: 0 }
    const live = Model.each(Echo, (sample) => Effect.succeed(sample))
    const server = await Server.start([Echo], live, { http: port, grpc: port, metrics: port })
    const http = "http://127.0.0.1:" + server.http.port
    const grpc = "http://127.0.0.1:" + server.grpc.port
    const request = (url, body, headers = {}) =>
      new Promise((resolve, reject) => {
        const sent = process.getBuiltinModule("node:http").request(url, { method: "POST", agent: false, headers }, (reply) => {
          reply.resume().on("end", () => resolve(reply.statusCode))
        })
        sent.on("error", reject).end(body)
      })
    const X = { name: "X", datatype: "FP32", shape: [1], data: [1] }
    const statuses = [await request(http + "/v2/models/echo/infer", JSON.stringify({ inputs: [X] }))]
    ${then}
    const builtIns = process.moduleLoadList.filter((name) => name.startsWith("NativeModule ")).map((name) => "node:" + name.slice(13))
    console.log(JSON.stringify([...statuses, ...builtIns, ...packages].map(String)))
    await server.stop()
  `
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" }))
}

/** Each of these takes 10 to 60 ms and 5 to 17 MB. */
const onDemand = /^node:(internal\/deps\/undici\/undici|http2|https|tls)$|^@connectrpc\//u

const usesNode = process.env["NEREID_HTTP2"] === "node"

it.skipIf(usesNode)("a server whose callers use HTTP loads neither undici, TLS and node:http2 nor Connect", () => {
  const modules = loaded("")
  expect(modules[0]).toBe("200")
  expect(modules).toContain("node:http")
  expect(modules.filter((name) => onDemand.test(name))).toEqual([])
})

it("Connect is loaded by the first RPC that needs it, and answers that one", () => {
  const path = "/inference.GRPCInferenceService/ServerReady"
  const modules = loaded(`
    const json = { "content-type": "application/json" }
    const calls = [1, 2].map(() => request(grpc + ${JSON.stringify(path)}, "{}", json))
    statuses.push(...await Promise.all(calls))
  `)
  expect(modules.slice(0, 3)).toEqual(["200", "200", "200"])
  expect(modules).toContain("@connectrpc/connect-node")
})
