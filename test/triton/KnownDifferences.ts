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
  // Of a repository.
  { row: "a load of a model whose configuration is wrong by itself", lines: /^only its log has the reason$/ },
  {
    row: "a load of a model whose configuration is wrong by itself",
    lines: /failed to load '\w*', failed to poll from model repository/,
  },
  {
    row: "a load of an ensemble of a model that does not exist",
    lines: /failed to load '\w*', no version is available/,
  },
  { row: "a syntax error in `config.pbtxt`", lines: /^its log has not .*failed to read text proto from/ },
  { row: "a `config.pbtxt` that is not UTF-8", cases: /not_utf8/ },
  { row: "a `config.pbtxt` with a byte order mark", cases: /line_ends/ },
  { row: "the error of a load whose versions fail", lines: /(?:;|policy of model '[^']*')(?:\n|\\n)/ },
  { row: "the name of a model in a load or unload", cases: /: (?:the name |a name of spaces|no name)/ },
  { row: "a parameter of a load or unload over HTTP", cases: /^(?:un)?load: / },
  { row: "a load with a `config` whose JSON has a duplicate key", cases: /a configuration with a duplicate field/ },
  { row: "a model whose configuration is wrong, in the index", cases: /bad_batch|that could not be loaded/ },
  { row: "`reason` of a version that is ready", cases: /^a model that is loaded|^every version of it/ },
  { row: "a member of the wrong JSON type: its name", cases: /^ready is no/ },
  { row: "a repository by name", cases: /^the index of a repository by name/ },
  { row: "`model_repository_agents`, `runtime`", cases: /without_effect/ },
  { row: "the backend of a model", cases: /: (?:defaults|a script)$/ },
  { row: "a script returns another datatype", cases: /another dim than declared/ },
  { row: "an output left out by a step", cases: /without a connection that a step requires/ },
  { row: "does not fit the shape of its `reshape`", cases: /that answers another rank/ },
  { row: "as many inputs as are required", cases: /^the input that the file has no value for is missing/ },
  { row: "labels of a file whose lines end with CR", cases: /^classes have the labels of their file/ },
  { row: "a warm-up of several rows", cases: /^warm-ups are executed/ },
  { row: "warm-ups in statistics", cases: /warm-ups are (?:in no|not counted)/ },
  { row: "the end of a decoupled step of an ensemble", cases: /the last response after a decoupled step/ },
  { row: "the order of outputs", cases: /^ensemble: tensors of two steps meet/ },
  { row: "an error text that ends with a space", cases: /^ensemble: (?:a shape that a step|two rows for a model)/ },
  { row: "a timeout of `-1` over gRPC", cases: /^ModelInfer: a (?:priority|timeout) of int64Param -1/ },
  { row: "`generate` of a model that gives no response", cases: /generate: (?:three responses|no response)/ },
  { row: "members of a `generate` response", lines: /^body data: \{"|^body \{"Y":/ },
  { row: "a shared memory region with a key", cases: /^(?:registering shared|SystemSharedMemoryRegister: the key)/ },
  { row: "classes of an output: none, or less", cases: /^classes: (?:none|less than none) is one/ },
  { row: "several mistakes in one request", lines: /input byte size mismatch/, cases: /: 0 rows \(/ },
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
  { row: "`GET /` where no page is", cases: /^GET \/$/ },
  { row: "metadata of a model whose declaration says more", cases: /\/models\/(?:text|scores)$|the declared contract/ },
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
  { row: "`Content-Encoding` other than gzip", cases: /^Content-Encoding|^errors of all kinds/ },
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
    cases:
      /^no message|^two messages|^a message of 4 GiB|^a compressed message|bytes that are no message|\d+ bytes of a message|^a length inside the message/,
  },
  { row: "bytes behind a gRPC message", cases: /^a byte behind the message|^an invalid flag/ },
  { row: "an unknown gRPC encoding, or an invalid timeout", cases: /^an unknown encoding|^a timeout of/ },
  { row: "the header `triton_grpc_error`", cases: /^stream: the first error ends/ },
  { row: "`grpc.health.v1.Health/Check` of an unknown service", cases: /^Check: / },
]
