"""Plain functions of NumPy arrays as models: no classes, parameters matched to inputs by name.

Strings declared as text come as object arrays of str, other BYTES as object arrays of bytes. BF16 inputs come as
`Tensor`, which frameworks read by DLPack.
"""

from __future__ import annotations

import inspect
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence

import numpy as np

from .errors import ErrorCode, RequestError, TritonModelException, cut, describe_failure
from .frames import RESPONSE, RETURNED, Frame, ProtocolError
from .function_outputs import FunctionOutputs
from .sender import Origin, RequestState
from .start import Field, Start
from .tensor import Tensor, TensorWriter, plan_tensors, view_tensors

if TYPE_CHECKING:
    from .serving import Serving


class BoundFunction:
    """A function and the parameter of each input."""

    __slots__ = ("call", "_encodings", "_names", "_positional")

    def __init__(self, call: Callable[..., Any], fields: Sequence[Field]) -> None:
        self.call = call
        parameters = list(_signature(call).parameters.values())
        self._names = _match(parameters, fields, _name_of(call))
        self._positional = [
            parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        self._encodings = {field.name: field.encoding for field in fields}

    def invoke(self, tensors: Sequence[Tensor]) -> Any:
        """Calls the function with inputs; its result may be awaitable or a generator."""
        values: dict[str, Any] = {}
        for tensor in tensors:
            name = self._names.get(tensor._name)
            if name is None:
                raise ProtocolError(f"EXECUTE has the undeclared input '{tensor._name}'")
            values[name] = self._value(tensor)
        if not self._positional:
            return self.call(**values)
        first = [values.pop(name) for name in self._positional if name in values]
        return self.call(*first, **values)

    def _value(self, tensor: Tensor) -> Any:
        if tensor._datatype == "BF16":
            return tensor
        array = tensor.as_numpy()
        if self._encodings.get(tensor._name) != "utf8":
            return array
        try:
            items = [item.decode("utf-8") for item in array.ravel().tolist()]
        except UnicodeDecodeError as error:
            raise RequestError(f"input '{tensor._name}' is not valid UTF-8: {error}") from None
        text = np.empty(len(items), np.object_)
        text[:] = items
        return text.reshape(array.shape)


def bind_function(module: Any, start: Start) -> BoundFunction:
    """Finds a module's function and checks its parameters against the declared inputs."""
    name = start.function
    function = getattr(module, name, None)
    where = start.file or start.module
    if function is None:
        raise TritonModelException(f"'{where}' has no function '{name}'.")
    if not callable(function):
        raise TritonModelException(f"'{name}' in '{where}' is not a function but {type(function).__name__}.")
    return BoundFunction(function, start.inputs)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:
        raise TritonModelException(f"The parameters of '{_name_of(function)}' are unknown; wrap it in a def.") from None


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _match(parameters: Sequence[inspect.Parameter], fields: Sequence[Field], function: str) -> dict[str, str]:
    """Name of the parameter for each input: the same name, or the same but for case."""
    takes_rest = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        raise TritonModelException(f"The function '{function}' must name its parameters; it has *args.")
    named = {p.name: p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD}
    inputs = ", ".join(field.name for field in fields) or "none"
    matched: dict[str, str] = {}
    for field in fields:
        name = _find(field.name, named, set(matched.values()))
        if name is None:
            if not takes_rest:
                raise TritonModelException(
                    f"The function '{function}' has no parameter for input '{field.name}'; its parameters are "
                    f"{', '.join(named) or 'none'}."
                )
            matched[field.name] = field.name
            continue
        matched[field.name] = name
        if field.optional and named[name].default is inspect.Parameter.empty:
            raise TritonModelException(
                f"The parameter '{name}' of the function '{function}' needs a default, because the input "
                f"'{field.name}' is optional."
            )
    for name, parameter in named.items():
        if name not in matched.values() and parameter.default is inspect.Parameter.empty:
            raise TritonModelException(
                f"The parameter '{name}' of the function '{function}' matches no input; the inputs are {inputs}."
            )
    return matched


def _find(name: str, named: dict[str, inspect.Parameter], taken: set[str]) -> Optional[str]:
    if name in named:
        return name
    similar = [other for other in named if other.lower() == name.lower() and other not in taken]
    return similar[0] if len(similar) == 1 else None


class FunctionExecutor:
    """Executes frames on a plain function."""

    def __init__(self, function: BoundFunction, start: Start) -> None:
        self._function = function
        self._start = start
        self._batches = start.max_batch_size > 0
        self._outputs = FunctionOutputs(start.outputs, self._batches)

    def execute(self, serving: Serving, frame: Frame) -> None:
        execution = frame.number
        header = frame.header
        if header.plan is None:
            rows = header.get("j")
            total = sum(rows) if self._batches and isinstance(rows, list) else None
            header.plan = (total, plan_tensors(header.get("i") or ())[0])
        expected, plans = header.plan
        try:
            tensors = view_tensors(plans, frame.body)
        except RequestError as error:
            serving.fail(execution, error)
            return
        del frame
        try:
            result = self._function.invoke(tensors)
            del tensors
            if hasattr(result, "__anext__"):
                self._start_stream(serving, execution, result)
                return
            if isinstance(result, Iterator):
                self._stream(serving, execution, result)
                return
            if hasattr(result, "__await__"):
                if self._start.concurrency > 1:
                    serving.take_turn()
                    serving.submit(result, lambda future: self._end(serving, execution, expected, future))
                    return
                result = serving.loop.run(result)
            self._return(serving, execution, result, expected)
        except ProtocolError:
            raise
        except BaseException as error:
            serving.fail(execution, error)

    def _return(self, serving: Serving, execution: int, result: Any, rows: Optional[int]) -> None:
        writer = TensorWriter()
        text = f'{{"x":{execution},"j":1,"o":[{writer.add(self._outputs.convert(result, rows))}]}}'
        serving.data.send(RETURNED, text, writer.pieces, writer.length)

    def _end(self, serving: Serving, execution: int, rows: Optional[int], future: Future[Any]) -> None:
        serving.end_turn()
        try:
            self._return(serving, execution, future.result(), rows)
        except BaseException as error:
            serving.fail(execution, error)

    def _open(self, serving: Serving, execution: int) -> RequestState:
        origin = Origin(serving.data, serving.cleanup, True, serving.open.forget, self._start.credit)
        state = RequestState(origin, execution, 0, None)
        serving.open.add(execution, [state])
        return state

    def _stream(self, serving: Serving, execution: int, items: Iterator[Any]) -> None:
        """Sends the items of a generator as responses."""
        state = self._open(serving, execution)
        try:
            for item in items:
                if state.credit is not None:
                    state.credit.take()
                if state.cancelled:
                    break
                self._send(state, item)
            _close(items)
            self._finish(state, None)
        except BaseException as error:
            self._finish(state, error)
        serving.data.send(RETURNED, {"x": execution, "r": [{"d": 1}]})

    def _start_stream(self, serving: Serving, execution: int, items: Any) -> None:
        """Sends the items of an asynchronous generator as responses, from the event loop."""
        state = self._open(serving, execution)

        async def stream() -> None:
            try:
                async for item in items:
                    if state.credit is not None:
                        await state.credit.take_later()
                    if state.cancelled:
                        break
                    self._send(state, item)
                await items.aclose()
                self._finish(state, None)
            except BaseException as error:
                self._finish(state, error)

        serving.data.send(RETURNED, {"x": execution, "r": [{"w": 1}]})
        serving.submit(stream(), lambda _: None)

    def _send(self, state: RequestState, item: Any) -> None:
        writer = TensorWriter()
        text = f'{{"x":{state.execution},"q":0,"final":0,"o":[{writer.add(self._outputs.convert(item, None))}]}}'
        state.origin.data.send(RESPONSE, text, writer.pieces, writer.length)

    def _finish(self, state: RequestState, error: Optional[BaseException]) -> None:
        header: dict[str, Any] = {"x": state.execution, "q": 0, "final": 1}
        if isinstance(error, RequestError):
            header.update(e=cut(str(error)), k=int(error.code))
        elif error is not None:
            header.update(e=describe_failure(error), k=int(ErrorCode.INTERNAL))
        state.close()
        state.origin.data.send(RESPONSE, header)


def _close(items: Any) -> None:
    close = getattr(items, "close", None)
    if close is not None:
        close()
