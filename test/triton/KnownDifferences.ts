/**
 * Differences of Triton 2.51 from what the cases expect, by the row of docs/guides/differences-from-triton.md that has
 * the reason. A difference is one line of a comparison; a case may have several.
 */

export interface KnownDifference {
  /** Part of the first cell of a row of the guide. */
  readonly row: string
  /** Names of the cases. Default: all. */
  readonly cases?: RegExp
  /** Default: all lines of these cases. */
  readonly lines?: RegExp
}

export const knownDifferences: ReadonlyArray<KnownDifference> = [
  // Of many cases.
  { row: "`Content-Type` of an error", lines: /text\/plain/ },
  { row: "an element of JSON data of a wrong type", lines: /: element \d+ of 'X' is /, cases: /^(?!.*integers)/ },
  {
    row: "a body that is not JSON, a member of the wrong JSON type",
    lines: /^status 50[01], expected 4\d\d: \{"error":"(?!Unsupported compression)/,
    cases: /^(?!generate|a shape that the)/,
  },
  { row: "FP32 and FP64 in JSON", cases: /^FP(32|64) data (?!one)/, lines: /"data":\[-?[\d.e+-]/ },
  {
    row: "FP32 and FP64 in JSON",
    lines: /^body \{(?:"id":"\w*",)?"model_name":"single_fp32".*"data":\[1\.0,2\.0\]\}\]\}, expected (?:\{|\/"data")/,
  },
  {
    row: "several mistakes in one request",
    lines:
      /batch size does not match other inputs|(?:error|\{"error":")unexpected inference (?:in|out)put|^error unexpected inference|but missing required input\(s\) \]/,
  },
  {
    row: "several mistakes in one request",
    cases:
      /^(?:no rows|an? wrong rank|a negative extent|as many elements as|ModelInfer: (?:raw contents|an extent)|no shape|an? shape )/,
  },
  { row: "an unknown datatype in a request", lines: /'<invalid>'/ },
  {
    row: "an error in a stream, or the empty last response",
    lines: /^triton_final_response|^\{"(?:errorMessage|inferResponse)"/,
  },
  { row: "integers in JSON outside of the range", cases: /^U?INT\d+ data \[-?\d+\]/ },
  // Of single groups of cases.
  { row: "trace settings: a number with other characters", cases: /^trace settings as \{"trace_level":\["NONE"\]\}/ },
  { row: "an unknown `log_format`", cases: /^an unknown log format/ },
  { row: "JSON data in 100 arrays", cases: /^data in \d+ arrays/ },
  { row: "an output that is requested twice", cases: /^an output twice/ },
  { row: "the order of outputs", cases: /^inputs in any order/ },
  { row: "more than 1,000,000 elements in a row", cases: /^classes: of a row with more/ },
  { row: "the name of an input in the error of a raw body", cases: /^a raw body/ },
  { row: "readiness of an unknown model over HTTP", cases: /\/ready$/ },
  { row: "metadata of the server", cases: /^GET \/v2$|^ServerMetadata/ },
  {
    row: "the backend of a model",
    cases:
      /^GET \/v2\/models\/(?:simple|onnx_simple)(?:\/config)?$|^ModelMetadata: a model|configuration of a decoupled/,
  },
  {
    row: "the models of this comparison",
    cases: /^GET \/v2\/models\/stats|^the index asked|^RepositoryIndex: all|^ModelStatistics: all/,
  },
  { row: "percent-encoded characters in a name", cases: /^GET \/v2\/models\/.*%/ },
  { row: "HEAD where GET is", cases: /^HEAD / },
  {
    row: "an empty body of an inference request",
    cases:
      /^a body of ""|(?:gzip|deflate) of nothing|^no length at all|header with a NUL|^invalid (?:gzip|deflate)|^deflate without/,
  },
  {
    row: "the text of a syntax error in JSON",
    cases: /^a body of|^FP32 data (?:that|without)|^a document whose length|^a shape of/,
  },
  {
    row: "an input or parameters that are no object",
    cases: /^(?:an input that is|parameters that are|outputs that are|inputs that are|an output that is)/,
  },
  {
    row: "a member of the wrong JSON type: its name",
    cases:
      /^a number of classes in a string|^the index where ready|^(?:settings of the log|trace settings) as|an extent of/,
  },
  {
    row: "a request that ends Triton, or that it does not answer",
    lines: /^Error: (?:The connection ended|Waited|connect|Not a status line)/,
  },
  { row: "a JSON object with a duplicate key", cases: /^the member .* twice$/ },
  { row: "a JSON string or key that is not UTF-8", cases: /UTF-8/ },
  { row: "`NaN`, `Infinity`, `-Infinity` in `parameters`", cases: /NaN|Infinity/ },
  { row: "JSON data of a tensor whose shape has no elements", cases: /^BYTES data one for none/ },
  { row: "the name of an output in an error", cases: /^FP16 in binary|^BF16 in binary/ },
  { row: "a number of elements that contradicts the shape", lines: /Shape does not match true shape/ },
  { row: "`Inference-Header-Content-Length` that is no number", cases: /^a document of/ },
  { row: "`Content-Encoding` other than gzip", cases: /^Content-Encoding/ },
  { row: "a compressed body that is cut off", cases: /(?:gzip|deflate) cut off/ },
  { row: "`Accept-Encoding` in capitals", cases: /^Accept-Encoding: GZIP/ },
  { row: "shared memory without `--allow-client-shm`", cases: /while it is off|CUDA|CudaSharedMemory/ },
  { row: "a repository by name", cases: /^a repository by name/ },
  { row: "unknown settings of the log", cases: /^settings of the log as \[\]|^an unknown log setting|^LogSettings/ },
  { row: "members of a `generate` response", cases: /^generate(?:_stream)?: / },
  { row: "a version that is no integer", cases: /: no number$/ },
  { row: "raw contents beside", cases: /one raw content too many/ },
  { row: "gRPC typed contents", cases: /integers out of range/ },
  { row: "a parameter `uint64_param`", cases: /64 bits without a sign/ },
  {
    row: "a gRPC message that is no protobuf",
    cases: /^no message|^two messages|^a message of 4 GiB|^a compressed message|bytes that are no message/,
  },
  { row: "an unknown gRPC encoding, or an invalid timeout", cases: /^an unknown encoding|^a timeout of/ },
  { row: "the header `triton_grpc_error`", cases: /^stream: the first error ends/ },
  { row: "`grpc.health.v1.Health/Check` of an unknown service", cases: /^Check: / },
]
