/** Paths and methods of the HTTP port: health, metadata, configuration, statistics, and unknown paths. */
import type { Line } from "../Acceptance.ts"
import { type HttpCase, type HttpExpected, http } from "../Case.ts"

const get = (
  path: string,
  expected: HttpExpected,
  line: Line,
  more: Pick<HttpCase, "server" | "port"> = {},
): HttpCase => http(`GET ${path}`, { path }, expected, { proves: [line], ...more })

const empty = (status: number): HttpExpected => ({ status, body: "" })

const error = (status: number, text: string | RegExp): HttpExpected => ({ status, error: text })

const json = (body: string | RegExp): HttpExpected => ({
  status: 200,
  body,
  headers: { "content-type": "application/json" },
})

const unknownModel: HttpExpected = {
  ...error(404, "Request for unknown model: 'no' is not found"),
  tag: "ModelNotFound",
}

const health: ReadonlyArray<HttpCase> = [
  get("/v2/health/live", empty(200), "C1"),
  get("/v2/health/ready", empty(200), "C1"),
  get("/v2/models/simple/ready", empty(200), "C1"),
  get("/v2/models/simple/versions/1/ready", empty(200), "C1"),
  get("/v2/models/versions/versions/3/ready", empty(200), "C1"),
  get("/v2/models/no/ready", unknownModel, "C1"),
  get(
    "/v2/models/simple/versions/2/ready",
    { ...error(404, "Request for unknown model: 'simple' version 2 is not found"), tag: "ModelNotFound" },
    "C1",
  ),
  get("/v2/health/live", empty(200), "C1", { server: "small" }),
  get("/v2/health/ready", empty(400), "C1", { server: "small" }),
  get("/v2/models/stopped/ready", error(400, "Model version not ready"), "C1", { server: "small" }),
  get("/v2/models/stopped/versions/1/ready", error(400, "Model version not ready"), "C1", { server: "small" }),
]

const tensors = (name: string) =>
  [0, 1].map((index) => `{"name":"${name}${index}","datatype":"INT32","shape":[-1,16]}`).join()

const simple = `{"name":"simple","versions":["1"],"platform":"nereid","inputs":[${tensors("INPUT")}],"outputs":[${tensors("OUTPUT")}]}`

const metadata: ReadonlyArray<HttpCase> = [
  get("/v2", json(/^\{"name":"nereid","version":"[^"]+","extensions":\[.*"binary_tensor_data".*\]\}$/), "C2"),
  get("/v2/models/simple", json(simple), "C3"),
  get("/v2/models/simple/versions/1", json(/^\{"name":"simple","versions":\["1"\]/), "C3"),
  get("/v2/models/versions", json(/"versions":\["1","3"\],/), "C3"),
  get("/v2/models/versions/versions/1", json(/"versions":\["1"\],/), "C3"),
  get("/v2/models/pair", json(/"inputs":\[\{"name":"X","datatype":"BYTES","shape":\[2\]\}\]/), "C3"),
  get(
    "/v2/models/shapes",
    json(
      /"inputs":\[\{"name":"A","datatype":"FP32","shape":\[-1,2\]\},.*\{"name":"D","datatype":"UINT8","shape":\[\]\}\]/,
    ),
    "C3",
  ),
  get("/v2/models/onnx_simple", json(/"platform":"onnxruntime_onnx".*"datatype":"FP32","shape":\[-1,2\]/), "C3"),
  get("/v2/models/text", json(/\],"contract":\{"inputs":\[\{"name":"TEXT","form":"utf8"\}\],.*\}\}$/), "C3"),
  get("/v2/models/scores", json(/"contract":\{.*\{"name":"CLASS","labels":\["cat","dog"\]\}/), "C3"),
  get("/v2/models/no", unknownModel, "C16"),
  get("/v2/models/ec%68o", error(404, "Request for unknown model: 'echo' is not found"), "C16"),
  get("/v2/models/s%69mple", json(/^\{"name":"simple"/), "C3"),
  get("/v2/models/simple?a=b", json(/^\{"name":"simple"/), "C3"),
  get(
    "/v2/models/simple/config",
    json(/"name":"simple","platform":"nereid",.*"max_batch_size":8,.*"data_type":"TYPE_INT32"/),
    "C4",
  ),
  get("/v2/models/simple/config", json(/"version_policy":\{"latest":\{"num_versions":1\}\}/), "C4"),
  get("/v2/models/simple/config", json(/"dims":\[16\]/), "C4"),
  get("/v2/models/simple/config", json(/"preferred_batch_size":\[8\],.*"max_queue_delay_microseconds":0/), "C4"),
  get("/v2/models/simple/config", json(/"instance_group":\[\{"name":"simple",.*"kind":"KIND_CPU"/), "C4"),
  get("/v2/models/pair/config", json(/"data_type":"TYPE_STRING"/), "C4"),
  get("/v2/models/simple/versions/1/config", json(/^\{"name":"simple"/), "C4"),
  get("/v2/models/no/config", unknownModel, "C16"),
]

const statistics: ReadonlyArray<HttpCase> = [
  get("/v2/models/stats", json(/^\{"model_stats":\[\{"name":"simple","version":"1",.*"name":"onnx_simple"/), "C38"),
  get("/v2/models/versions/stats", json(/"version":"1".*"version":"3"/), "C38"),
  get("/v2/models/versions/versions/3/stats", json(/^\{"model_stats":\[\{"name":"versions","version":"3",/), "C38"),
  get(
    "/v2/models/matrix/stats",
    json(
      /"inference_stats":\{"success":\{"count":[0-9]+,"ns":[0-9]+\},"fail":\{.*\},"queue":\{.*\},"compute_input":\{.*\},"compute_infer":\{.*\},"compute_output":\{.*\},"cache_hit":\{.*\},"cache_miss":\{.*\}\}.*"batch_stats":\[.*"memory_usage":\[/,
    ),
    "C38",
  ),
  get("/v2/models/no/stats", { ...error(400, "requested model 'no' is not available"), tag: "InvalidRequest" }, "C38"),
  get(
    "/v2/models/simple/versions/2/stats",
    { ...error(400, "requested model version is not available for model 'simple'"), tag: "InvalidRequest" },
    "C38",
  ),
]

const metrics: ReadonlyArray<HttpCase> = [
  get(
    "/metrics",
    {
      status: 200,
      headers: { "content-type": /^text\/plain; charset=utf-8/ },
      body: /# TYPE nv_inference_request_success counter\n/,
    },
    "C38",
    { port: "metrics" },
  ),
  ...["REJECTED", "CANCELED", "BACKEND", "OTHER"].map((reason) =>
    get(
      "/metrics",
      {
        status: 200,
        body: new RegExp(`nv_inference_request_failure\\{model="matrix",reason="${reason}",version="1"\\} [0-9]+\n`),
      },
      "C38",
      { port: "metrics" },
    ),
  ),
  get(
    "/metrics",
    { status: 200, body: /nv_inference_pending_request_count\{model="simple",version="1"\} 0\n/ },
    "C38",
    { port: "metrics" },
  ),
  get("/metrics/", { status: 200 }, "C38", { port: "metrics" }),
  get("/", error(404, /./), "C38", { port: "metrics" }),
]

const notFound = [
  "/",
  "/v1/models/simple",
  "/v2/",
  "/v2/health",
  "/v2/health/",
  "/v2/health/live/",
  "/v2/Health/live",
  "/v2/models/simple/",
  "/v2/models/simple/versions",
  "/v2/models/simple/versions/",
  "/v2/models/simple/versions/x",
  "/v2/models/simple/versions/-1/ready",
  "/v2/models/simple/versions/1.0",
  "/v2/models/simple/versions/1/infer/",
  "/v2/models//ready",
  "/v2/models/simple/%72eady",
  "/v2/models/%zz",
  "//v2",
  "/v2/models/simple/infer/x",
]

const wrongMethods: ReadonlyArray<readonly [string, string]> = [
  ["POST", "/v2"],
  ["POST", "/v2/health/live"],
  ["DELETE", "/v2/health/ready"],
  ["GET", "/v2/models/simple/infer"],
  ["PUT", "/v2/models/simple/infer"],
  ["PATCH", "/v2/models/simple"],
  ["OPTIONS", "/v2/models/simple/infer"],
  ["POST", "/v2/models/simple/config"],
  ["POST", "/v2/models/stats"],
]

const wrong: ReadonlyArray<HttpCase> = [
  ...notFound.map((path) => get(path, error(404, "Not Found"), "C5")),
  ...wrongMethods.map(([method, path]) =>
    http(`${method} ${path}`, { method, path, body: "" }, error(405, "Method Not Allowed"), { proves: ["C5"] }),
  ),
  ...(
    [
      ["/v2/health/live", 200],
      ["/v2/models/simple", 200],
      ["/v2/models/no", 404],
      ["/v2/models/simple/infer", 405],
    ] as const
  ).map(([path, status]) =>
    http(
      `HEAD ${path} is answered as GET, without a body`,
      { method: "HEAD", path },
      { status, body: "" },
      {
        proves: ["C5"],
      },
    ),
  ),
]

export const routes: ReadonlyArray<HttpCase> = [...health, ...metadata, ...statistics, ...metrics, ...wrong]
