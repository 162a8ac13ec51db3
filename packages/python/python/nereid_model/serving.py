"""Executes the requests that come over a data socket, one execution after the other or, where allowed, several."""

from __future__ import annotations

import gc
import threading
import traceback
from concurrent.futures import Future, wait
from typing import Any, Callable, Optional, Protocol

from .buffers import Buffers
from .cleanup import Cleanup
from .errors import ErrorCode, RequestError, WrongReturn, cut, describe_failure
from .event_loop import EventLoop
from .flags import REQUEST_RELEASE_RESCHEDULE
from .frames import EXECUTE, RETURNED, Frame, FrameSocket, Kind, ProtocolError, encode
from .global_lock import has_global_lock
from .host import Host
from .logger import LogLevel
from .mapped import Target, read_targets
from .open_requests import OpenRequests
from .request import InferenceRequest
from .response import InferenceResponse, response_fields
from .sender import Origin, RequestState, check_returned, never_answered
from .start import Start
from .tensor import TensorPlan, TensorWriter, plan_tensors, view_tensors


class Executor(Protocol):
    """What the serving loop runs: a Triton model or a plain function."""

    def execute(self, serving: Serving, frame: Frame) -> None:
        """Handles one EXECUTE frame and answers it, now or later."""


class Serving:
    """Reads the EXECUTE frames of one instance and hands them to its executor."""

    def __init__(self, start: Start, host: Host, data: FrameSocket, buffers: Buffers, cleanup: Cleanup) -> None:
        self.start = start
        self.host = host
        self.data = data
        self.buffers = buffers
        self.cleanup = cleanup
        self.open = OpenRequests()
        self.origin = Origin(data, cleanup, start.decoupled, self.open.forget, start.credit)
        self.loop = EventLoop()
        # Of a model that learns of the ends of its sequences.
        self.sequence_ended: Optional[Callable[[Any, str], Any]] = None
        self._turns = threading.Semaphore(start.concurrency)
        self._tasks: set[Future[Any]] = set()

    def run(self, executor: Executor) -> None:
        """Serves until the data socket ends."""
        while self._serve_one(executor):
            pass

    def finish(self) -> None:
        """Waits for the executions that go on in the event loop."""
        wait(list(self._tasks))

    def _serve_one(self, executor: Executor) -> bool:
        # In a function of its own, so that no variable keeps a request's buffer while the thread waits for the next.
        frame = self.data.receive()
        if frame is None:
            return False
        if frame.kind != EXECUTE:
            if frame.kind == Kind.LOG_LEVEL:
                self.host.set_log_levels(frame.header)
                return True
            if frame.kind == Kind.SEQUENCE_ENDED:
                self._end_sequence(frame.header.get("c"), frame.header.get("e", ""))
                return True
            raise ProtocolError(f"unexpected frame of kind {frame.kind} on the data socket")
        if not isinstance(frame.number, int):
            raise ProtocolError("EXECUTE has no number")
        if frame.lost_body:
            text = f"The requests of {frame.lost_body} bytes do not fit into the memory of the model's process."
            self.data.send(RETURNED, {"x": frame.number, "e": text, "k": int(ErrorCode.UNAVAILABLE)})
        else:
            executor.execute(self, frame)
        return True

    def _end_sequence(self, correlation_id: Any, reason: str) -> None:
        if self.sequence_ended is None:
            return
        try:
            result = self.sequence_ended(correlation_id, reason)
            if hasattr(result, "__await__"):
                self.loop.run(result)
        except BaseException as error:
            self.log_exception(error, self.start.file)

    def submit(self, awaitable: Any, on_end: Callable[[Future[Any]], None]) -> None:
        """Runs an awaitable on the event loop; `on_end` gets its future."""
        task = self.loop.submit(awaitable)
        self._tasks.add(task)

        def ended(future: Future[Any]) -> None:
            try:
                on_end(future)
            finally:
                self._tasks.discard(future)

        task.add_done_callback(ended)

    def take_turn(self) -> None:
        """Waits until fewer than START's number of asynchronous executions are under way."""
        self._turns.acquire()

    def end_turn(self) -> None:
        self._turns.release()

    def fail(self, execution: int, error: BaseException) -> None:
        """Answers an execution with an exception."""
        header: dict[str, Any] = {"x": execution, "e": describe_failure(error)}
        if isinstance(error, RequestError):
            header.update(e=cut(str(error)), k=int(error.code))
        self.data.send(RETURNED, header)

    def log_exception(self, error: BaseException, file: str) -> None:
        """Writes an exception with its traceback to the log."""
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
        self.host.log(int(LogLevel.ERROR), text, file, 0)


# A request as its header describes it: fields, wanted outputs, inputs, and shared memory for outputs.
RequestPlan = tuple[dict[str, Any], Optional[frozenset[str]], list[TensorPlan], Optional[dict[str, Target]]]


class TritonExecutor:
    """Executes requests on an instance of `TritonPythonModel`."""

    def __init__(self, model: Any, start: Start) -> None:
        self._execute = getattr(model, "execute", None)
        self._start = start
        self._outputs = [output.name for output in start.outputs] or None
        self._all_outputs = frozenset(self._outputs) if self._outputs else None

    def execute(self, serving: Serving, frame: Frame) -> None:
        execution = frame.number
        try:
            requests, states = self._read(serving, frame)
        except RequestError as error:
            serving.fail(execution, error)
            return
        del frame
        try:
            if self._execute is None:
                raise WrongReturn(f"Python model {self._start.file} does not implement `execute` method.")
            result = self._execute(requests)
            if type(result) is not list and hasattr(result, "__await__"):
                if self._start.decoupled:
                    serving.submit(result, lambda future: self._end_decoupled(serving, states, future))
                    result = None
                elif self._start.concurrency > 1:
                    serving.take_turn()
                    serving.submit(result, lambda future: self._end_concurrent(serving, execution, states, future))
                    return
                else:
                    result = serving.loop.run(result)
            self._return(serving, execution, states, result)
        except ProtocolError:
            raise
        except BaseException as error:
            self._fail(serving, execution, states, error)

    def _read(self, serving: Serving, frame: Frame) -> tuple[list[InferenceRequest], list[RequestState]]:
        if frame.header.plan is None:
            frame.header.plan = self._plan(frame.header)
        execution, body = frame.number, frame.body
        requests: list[InferenceRequest] = []
        states: list[RequestState] = []
        for index, (item, requested, tensors, targets) in enumerate(frame.header.plan):
            inputs = view_tensors(tensors, body)
            state = RequestState(serving.origin, execution, index, requested)
            if targets is not None:
                state.targets = targets
            states.append(state)
            requests.append(InferenceRequest._received(item, inputs, state, self._outputs))
        serving.open.add(execution, states)
        if self._start.decoupled:
            # The sender exists from the start: when it goes unclosed, with the request or later, the request ends.
            serving.cleanup.start()
            for request in requests:
                request.get_response_sender()
        return requests, states

    def _plan(self, header: dict[str, Any]) -> list[RequestPlan]:
        items = header.get("r")
        if not isinstance(items, list):
            raise ProtocolError("EXECUTE has no requests")
        plans: list[RequestPlan] = []
        end = 0
        for item in items:
            try:
                names = item.get("o")
                requested = self._all_outputs if names is None else frozenset(names)
                tensors, end = plan_tensors(item.get("i") or (), end)
                targets = read_targets(item["m"]) if "m" in item else None
            except (AttributeError, TypeError) as error:
                raise ProtocolError(f"a request in EXECUTE is wrong: {error}") from None
            plans.append((item, requested, tensors, targets))
        return plans

    def _return(self, serving: Serving, execution: int, states: list[RequestState], result: Any) -> None:
        tensors = TensorWriter()
        if self._start.decoupled:
            if result is not None:
                raise WrongReturn(
                    f"Python model '{self._start.instance_name}' is using the decoupled mode and the execute function "
                    "must return None."
                )
            outcomes = [_unreturned(state) for state in states]
        else:
            outcomes = _outcomes(result, states, tensors)
            if _WAITS in outcomes:
                serving.cleanup.start()
        for state, outcome in zip(states, outcomes):
            if outcome is not _WAITS:
                state.closed = True
        if _WAITS in outcomes:
            serving.open.forget(execution)
        else:
            serving.open.end(execution)
        text = f'{{"x":{execution},"r":[{",".join(outcomes)}]}}'
        serving.data.send(RETURNED, text, tensors.pieces, tensors.length)

    def _fail(self, serving: Serving, execution: int, states: list[RequestState], error: BaseException) -> None:
        for state in states:
            with state.lock:
                state.close()
        serving.fail(execution, error)

    def _end_concurrent(
        self, serving: Serving, execution: int, states: list[RequestState], future: Future[Any]
    ) -> None:
        serving.end_turn()
        try:
            self._return(serving, execution, states, future.result())
        except BaseException as error:
            self._fail(serving, execution, states, error)

    def _end_decoupled(self, serving: Serving, states: list[RequestState], future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            text = describe_failure(error)
            for state in states:
                state.failure = text
            serving.log_exception(error, self._start.file)
            # The traceback holds the requests; without it their senders end them now.
            error.__traceback__ = None
            if not has_global_lock():
                # Free-threaded Python may keep the frames of the coroutine until a collection.
                serving.cleanup.add(_collect)


def _collect() -> None:
    gc.collect()


# Outcome of a request whose sender goes on.
_WAITS = '{"w":1}'


def _unreturned(state: RequestState) -> str:
    """Outcome, as JSON, of a request for which execute returned no response."""
    if state.release_flags == REQUEST_RELEASE_RESCHEDULE:
        return '{"re":1}'
    if state.closed:
        return '{"d":1}'
    if state.taken:
        return _WAITS
    return encode(never_answered())


def _outcomes(result: Any, states: list[RequestState], tensors: TensorWriter) -> list[str]:
    """Outcomes of an execution in default mode, as JSON; `tensors` gets those of all responses."""
    if result is None:
        result = [None] * len(states)
    if not isinstance(result, list):
        raise WrongReturn(f"Expected a list in the execute return, found type '{type(result)}'.")
    if len(result) != len(states):
        raise WrongReturn(
            "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
            f"InferenceRequest(s) size is:{len(states)}, and InferenceResponse(s) size is:{len(result)}\n"
        )
    # All of them, before an output is written into shared memory.
    for response, state in zip(result, states):
        if type(response) is not InferenceResponse or state.taken or state.release_flags:
            _check_returned(response, state)
    outcomes: list[str] = []
    for response, state in zip(result, states):
        if response is None:
            outcomes.append(_unreturned(state))
        else:
            outcomes.append(f"{{{response_fields(response, state, tensors)}}}")
    return outcomes


def _check_returned(response: Any, state: RequestState) -> None:
    """Raises unless the element of the list that execute returned may answer its request."""
    if response is None:
        return
    if state.release_flags == REQUEST_RELEASE_RESCHEDULE:
        raise WrongReturn(
            "Expected a None object in the execute function return list for reschduled request, found type "
            f"'{type(response)}'."
        )
    if not isinstance(response, InferenceResponse):
        raise WrongReturn(
            "Expected an 'InferenceResponse' object in the execute function return list, found type "
            f"'{type(response)}'."
        )
    if state.taken:
        check_returned(state)


def optional_method(model: Any, name: str) -> Optional[Callable[..., Any]]:
    """A method that a model may have."""
    method = getattr(model, name, None)
    return method if callable(method) else None
