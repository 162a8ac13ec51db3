"""`python -m nereid_model model.py`: one request to a model, outside the server and, where wanted, in a debugger.

Everything runs in the main thread of this process, so breakpoints, profilers and tracebacks work as in any program.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any, Optional, Sequence

from .config import ModelConfig
from .datatypes import STORAGE
from .errors import TritonModelException, describe_exception
from .flags import RESPONSE_COMPLETE_FINAL
from .frames import Kind
from .host import Phase, set_current_host
from .local_host import LocalHost
from .model_file import describe_load_error, extend_path, import_api, import_model, model_class
from .pbtxt import parse_pbtxt
from .request import InferenceRequest
from .response import InferenceResponse
from .runner_inputs import fields_of, make_inputs
from .sender import Origin, RequestState
from .start import Start
from .tensor import Tensor, read_tensors

_EPILOG = """\
examples:
  python -m nereid_model models/add/1/model.py --input 'IN0=[1, 2, 3]' --input IN1=values.npy
  python -m nereid_model models/add/1/model.py --random --json
  python -m pdb -m nereid_model models/add/1/model.py

The configuration is config.pbtxt or config.json in the folder above the version's, unless --config names one.
Calls of other models (BLS) fail with an error, because they need a server. Log lines go to stderr.
Exit status: 0 for a response, 1 for an error of the model, 2 for wrong arguments.
"""


class LocalData:
    """Stands in for the data socket: collects what senders send."""

    def __init__(self) -> None:
        self.responses: list[InferenceResponse] = []

    def send(self, kind: int, text: str, pieces: Sequence[Any] = (), body_bytes: int = 0) -> None:
        assert kind == Kind.RESPONSE
        header = json.loads(text)
        if "o" in header or "e" in header:
            body = bytearray(b"".join(bytes(memoryview(piece)) for piece in pieces))
            tensors = read_tensors(header.get("o") or (), body)
            self.responses.append(InferenceResponse._received(header, tensors))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        responses = run_once(options)
    except TritonModelException as error:
        return _fail(str(error))
    except ImportError as error:
        return _fail(describe_load_error(error)["e"])
    except Exception as error:
        return _fail(describe_exception(error))
    if options.json:
        print(json.dumps([_as_json(response) for response in responses], ensure_ascii=False))
    else:
        for number, response in enumerate(responses):
            _print(response, number if len(responses) > 1 else None)
    return 1 if any(response.has_error() for response in responses) else 0


def run_once(options: argparse.Namespace) -> list[InferenceResponse]:
    """Loads the model, makes one request and returns its responses."""
    file = os.path.abspath(options.model)
    if not os.path.isfile(file):
        raise TritonModelException(f"There is no file '{options.model}'.")
    version_dir = os.path.dirname(file)
    model_dir = os.path.abspath(options.repository) if options.repository else os.path.dirname(version_dir)
    host = LocalHost()
    host.model_directory = version_dir
    set_current_host(host)
    config = _read_config(options.config, model_dir)
    start = Start(mode="triton", file=file, version_dir=version_dir, model_dir=model_dir)
    extend_path(start)
    import_api()
    module = import_model(file)
    if options.function:
        return [_call_function(module, options, config, file)]
    kind = model_class(module)
    config = _complete(kind, config, host)
    decoupled = bool((config.get("model_transaction_policy") or {}).get("decoupled"))
    model = kind()
    if hasattr(model, "initialize"):
        model.initialize(_initialize_args(config, model_dir, version_dir))
    inputs = make_inputs(
        options.input,
        fields_of(config, "input"),
        int(config.get("max_batch_size") or 0),
        "random" if options.random else "zeros",
        options.seed,
    )
    host.phase = Phase.SERVE
    responses = _execute(model, inputs, decoupled, fields_of(config, "output"), host)
    host.phase = Phase.FINALIZE
    if hasattr(model, "finalize"):
        model.finalize()
    return responses


def _execute(
    model: Any, inputs: list[Tensor], decoupled: bool, outputs: Any, host: LocalHost
) -> list[InferenceResponse]:
    names = [field.name for field in outputs] or None
    data: Any = LocalData()
    origin = Origin(data, host.cleanup, decoupled, lambda *_: None)
    state = RequestState(origin, 1, 0, frozenset(names) if names else None)
    header: dict[str, Any] = {}
    request = InferenceRequest._received(header, inputs, state, names)
    sender = request.get_response_sender() if decoupled else None
    if not hasattr(model, "execute"):
        raise TritonModelException("The model does not implement `execute` method.")
    result = model.execute([request])
    if hasattr(result, "__await__"):
        result = asyncio.run(_wait(result))
    if decoupled:
        if result is not None:
            raise TritonModelException(
                f"The model uses the decoupled mode and its execute must return None, found {type(result)}."
            )
        _wait_for_final(state)
        del sender
        return data.responses
    if isinstance(result, list) and len(result) == 1 and isinstance(result[0], InferenceResponse):
        response = result[0]
        if names is not None and not response.has_error():
            return [
                InferenceResponse._received(
                    {"p": response.parameters()}, [t for t in response.output_tensors() if t.name() in names]
                )
            ]
        return [response]
    if data.responses or state.taken:
        return data.responses
    raise TritonModelException(f"execute must return a list of one InferenceResponse, found {result!r}.")


def _wait_for_final(state: RequestState) -> None:
    """Waits for threads of the model that still send; Ctrl-C ends the wait."""
    import threading

    for thread in threading.enumerate():
        if state.closed:
            return
        if thread is not threading.current_thread() and not thread.name.startswith("nereid-"):
            thread.join()
    if not state.closed:
        sys.stderr.write(
            f"WARNING the model sent no final flag ({RESPONSE_COMPLETE_FINAL}, TRITONSERVER_RESPONSE_COMPLETE_FINAL)\n"
        )


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def _call_function(module: Any, options: argparse.Namespace, config: dict[str, Any], file: str) -> InferenceResponse:
    from .function_outputs import FunctionOutputs
    from .functions import bind_function

    inputs, outputs = fields_of(config, "input"), fields_of(config, "output")
    if not inputs and not outputs:
        raise TritonModelException("--function needs a configuration with its inputs and outputs.")
    batch = int(config.get("max_batch_size") or 0)
    start = Start(mode="function", file=file, function=options.function, inputs=tuple(inputs), outputs=tuple(outputs))
    function = bind_function(module, start)
    result = function.invoke(
        make_inputs(options.input, inputs, batch, "random" if options.random else "zeros", options.seed)
    )
    if hasattr(result, "__await__"):
        result = asyncio.run(_wait(result))
    return InferenceResponse(FunctionOutputs(outputs, batch > 0).convert(result, None))


def _read_config(path: Optional[str], model_dir: str) -> dict[str, Any]:
    candidates = [path] if path else [os.path.join(model_dir, name) for name in ("config.pbtxt", "config.json")]
    for candidate in candidates:
        if not os.path.isfile(candidate):
            if path:
                raise TritonModelException(f"There is no configuration '{path}'.")
            continue
        with open(candidate, encoding="utf-8") as file:
            text = file.read()
        try:
            config = json.loads(text) if candidate.endswith(".json") else parse_pbtxt(text)
        except ValueError as error:
            raise TritonModelException(f"'{candidate}' cannot be read: {error}") from None
        if not isinstance(config, dict):
            raise TritonModelException(f"'{candidate}' must hold an object.")
        return config
    return {}


def _complete(kind: Any, config: dict[str, Any], host: LocalHost) -> dict[str, Any]:
    if not hasattr(kind, "auto_complete_config"):
        return config
    host.phase = Phase.AUTO_COMPLETE
    completed = kind.auto_complete_config(ModelConfig(json.dumps(config)))
    host.phase = Phase.INITIALIZE
    if not isinstance(completed, ModelConfig):
        raise TritonModelException("auto_complete_config must return a valid pb.ModelConfig object.")
    return completed.as_dict()


def _initialize_args(config: dict[str, Any], model_dir: str, version_dir: str) -> dict[str, str]:
    name = str(config.get("name") or os.path.basename(model_dir))
    version = os.path.basename(version_dir)
    return {
        "model_config": json.dumps({"name": name, "input": [], "output": [], "max_batch_size": 0, **config}),
        "model_instance_kind": "CPU",
        "model_instance_name": f"{name}_0_0",
        "model_instance_device_id": "0",
        "model_repository": model_dir,
        "model_version": version if version.isdigit() else "1",
        "model_name": name,
    }


def _values(tensor: Tensor) -> Any:
    if tensor._datatype == "BF16":
        assert tensor._array is not None
        return (tensor._array.astype("uint32") << 16).view("float32").tolist()
    array = tensor.as_numpy()
    if tensor._datatype != "BYTES":
        return array.tolist()
    return _decode(array.tolist())


def _decode(item: Any) -> Any:
    return [_decode(part) for part in item] if isinstance(item, list) else item.decode("utf-8", "backslashreplace")


def _as_json(response: InferenceResponse) -> dict[str, Any]:
    error = response.error()
    if error is not None:
        return {"error": error.message(), "code": error.code().name}
    outputs = [
        {"name": t.name(), "datatype": t._datatype, "shape": t.shape(), "data": _values(t)}
        for t in response.output_tensors()
    ]
    fields: dict[str, Any] = {"outputs": outputs}
    if response.parameters() != "{}":
        fields["parameters"] = json.loads(response.parameters())
    return fields


def _print(response: InferenceResponse, number: Optional[int]) -> None:
    if number is not None:
        print(f"response {number}")
    error = response.error()
    if error is not None:
        print(f"error {error.code().name}: {error.message()}")
        return
    for tensor in response.output_tensors():
        print(f"{tensor.name()} {tensor._datatype} {tensor.shape()}")
        if tensor._datatype in STORAGE and tensor._datatype != "BF16":
            print(tensor.as_numpy())
        else:
            print(_values(tensor))
    if response.parameters() != "{}":
        print(f"parameters {response.parameters()}")


def _fail(text: str) -> int:
    sys.stderr.write(text.rstrip("\n") + "\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nereid_model",
        description="Load a Python model, execute one request and print its outputs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="file of the model, such as models/add/1/model.py")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input as JSON, or the path of a JSON or .npy file; may be repeated. "
        "Missing inputs are zeros of the configured shape, with 1 for variable sizes",
    )
    parser.add_argument("--random", action="store_true", help="fill missing inputs with random values")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random values (default 0)")
    parser.add_argument("--config", metavar="FILE", help="config.pbtxt or .json (default: beside the version folder)")
    parser.add_argument("--repository", metavar="DIR", help="folder of the model (default: above the version folder)")
    parser.add_argument("--function", metavar="NAME", help="call a plain function instead of TritonPythonModel")
    parser.add_argument("--json", action="store_true", help="print the responses as one JSON array")
    return parser
