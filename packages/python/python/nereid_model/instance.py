"""Instances of a loaded model, and how a process makes them."""

from __future__ import annotations

import inspect
import json
import signal
import socket
import sys
from concurrent.futures import Executor as ThreadExecutor
from dataclasses import replace
from typing import Any, Callable, Optional, Sequence

from .buffers import Buffers
from .cleanup import Cleanup
from .config import ModelConfig
from .errors import TritonModelException
from .fork_relay import ForkRelay
from .frames import Frame, FrameSocket, Kind
from .global_lock import has_global_lock
from .host import Phase, set_current_host
from .mapped import can_map
from .model_file import extend_path, import_api, import_model, model_class
from .readiness import Readiness
from .server_host import ServerHost
from .serving import Executor, Serving, TritonExecutor, optional_method
from .shared_bodies import SharedBodies
from .start import Start

_BUFFER_BYTES = 1024 * 1024


class Instance:
    """One instance: its requests, its readiness and its end."""

    __slots__ = ("_executor", "_finalize", "_style", "readiness", "serving")

    def __init__(
        self, serving: Serving, executor: Executor, readiness: Readiness, style: str, finalize: Callable[[], None]
    ) -> None:
        self.serving = serving
        self._executor = executor
        self.readiness = readiness
        self._style = style
        self._finalize = finalize

    def describe(self) -> dict[str, Any]:
        """Fields of STARTED."""
        return {
            "mode": self._style,
            "has_ready": self.readiness.checks,
            "has_sequence_ended": self.serving.sequence_ended is not None,
            "maps": can_map(),
        }

    def serve(self) -> None:
        """Executes requests until the data socket ends."""
        self.serving.run(self._executor)

    def finalize(self) -> None:
        self._finalize()


class Loading:
    """Loads the model of a process, once it knows its settings."""

    def __init__(self, start: Start, control: FrameSocket, handlers: dict[int, Any]) -> None:
        self._start = start
        self._buffers = Buffers()
        self._cleanup = Cleanup()
        control.allocate_with(self._buffers.take)
        self._host = ServerHost(control, start.bls_threads)
        self._host.set_log_levels(start.log)
        self._host.model_directory = start.version_dir
        self._host.cleanup = self._cleanup
        set_current_host(self._host)
        handlers[Kind.REPLY] = self._host.reply
        handlers[Kind.LOG_LEVEL] = lambda frame: self._host.set_log_levels(frame.header)
        self._handlers = handlers
        # Where the server finds the memory that it may share with each instance.
        self.memory: list[dict[str, Any]] = []

    def complete_config(self) -> dict[str, Any]:
        """Runs the model's auto_complete_config; fields of STARTED."""
        self._host.phase = Phase.AUTO_COMPLETE
        complete = optional_method(model_class(self._import()), "auto_complete_config")
        if complete is None:
            return {}
        completed = complete(ModelConfig(self._start.args["model_config"]))
        if not isinstance(completed, ModelConfig):
            raise TritonModelException(
                f"auto_complete_config function in model '{self._start.args.get('model_name', '')}' must return a "
                "valid pb.ModelConfig object."
            )
        config = completed.as_dict()
        try:
            json.dumps(config, ensure_ascii=False, allow_nan=False).encode("utf-8")
        except (TypeError, ValueError, RecursionError) as error:
            raise TritonModelException(
                f"auto_complete_config function in model '{self._start.args.get('model_name', '')}' returned a "
                f"configuration that JSON cannot express: {error}"
            ) from None
        return {"config": config}

    def load(self, sockets: Sequence[socket.socket], threads: Sequence[ThreadExecutor]) -> list[Instance]:
        """Imports the model and makes its instances: the first one in this thread, each further one in its own."""
        all_args = (self._start.args, *self._start.threads)
        memory = [SharedBodies.make() for _ in sockets]
        servings = [
            self._serving(data, shared, args) for data, shared, args in zip(sockets, memory, all_args)
        ]
        self._handle_requests(servings)
        shared = [one for one in memory if one is not None]
        if len(shared) == len(memory):
            self.memory = [one.describe() for one in shared]
            self._handlers[Kind.SHARED] = lambda _: _open(shared)
        ForkRelay(self._host, self._buffers, lambda: _reset_in_fork(servings), shared).install()
        had_lock = has_global_lock()
        module = self._import()
        make = self._make_function if self._start.mode == "function" else self._make_model
        others = [thread.submit(make, module, serving) for thread, serving in zip(threads, servings[1:])]
        instances = [make(module, servings[0]), *(other.result() for other in others)]
        if threads and not had_lock and has_global_lock():
            raise TritonModelException(_LOCKED.format(sys.executable))
        self._host.phase = Phase.SERVE
        return instances

    def _serving(self, data: socket.socket, shared: Optional[SharedBodies], args: dict[str, str]) -> Serving:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            data.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        frames = FrameSocket(data, self._buffers.take, shared, executes=True)
        return Serving(replace(self._start, args=args), self._host, frames, self._buffers, self._cleanup)

    def finalizing(self) -> None:
        """No instance executes any more."""
        self._host.phase = Phase.FINALIZE

    def finish_cleanup(self) -> None:
        """Waits for what finalizers of the model have left to do."""
        self._cleanup.wait()

    def _import(self) -> Any:
        extend_path(self._start)
        import_api()
        return import_model(self._start.file, self._start.module, self._start.version_dir)

    def _handle_requests(self, servings: Sequence[Serving]) -> None:
        def cancel(frame: Frame) -> None:
            servings[frame.header.get("t", 0)].open.cancel(frame.header["x"], frame.header["q"])

        def give(frame: Frame) -> None:
            header = frame.header
            servings[header.get("t", 0)].open.give(header["x"], header["q"], header["n"])

        self._handlers[Kind.CANCEL] = cancel
        self._handlers[Kind.CREDIT] = give

    def _make_model(self, module: Any, serving: Serving) -> Instance:
        start = serving.start
        model = model_class(module)()
        initialize = optional_method(model, "initialize")
        if initialize is not None:
            result = initialize(dict(start.args))
            if hasattr(result, "__await__"):
                serving.loop.run(result)
        readiness = Readiness(
            optional_method(model, "is_ready"), start.args.get("model_instance_name", ""), serving.loop
        )
        serving.sequence_ended = optional_method(model, "sequence_ended")
        finalize = optional_method(model, "finalize")
        style = style_of(optional_method(model, "execute"))
        return Instance(serving, TritonExecutor(model, start), readiness, style, finalize or (lambda: None))

    def _make_function(self, module: Any, serving: Serving) -> Instance:
        from .functions import FunctionExecutor, bind_function

        start = serving.start
        function = bind_function(module, start)
        readiness = Readiness(optional_method(module, "is_ready"), start.instance_name, serving.loop)
        return Instance(serving, FunctionExecutor(function, start), readiness, style_of(function.call), lambda: None)


def _open(shared: Sequence[SharedBodies]) -> None:
    for one in shared:
        one.opened()


_LOCKED = (
    "An import of the model has enabled the global interpreter lock (GIL) of {}, so its threads would wait for each "
    "other. The RuntimeWarning in the log names the module. The environment variable PYTHON_GIL=0 keeps the lock off."
)


def style_of(function: Optional[Callable[..., Any]]) -> str:
    """How a function answers: "sync", "async", "generator" or "async-generator"."""
    if inspect.isasyncgenfunction(function):
        return "async-generator"
    if inspect.iscoroutinefunction(function):
        return "async"
    return "generator" if inspect.isgeneratorfunction(function) else "sync"


def _reset_in_fork(servings: Sequence[Serving]) -> None:
    """Releases in a fork what belongs to its parent; SIGTERM works again, since pools of processes end by it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for serving in servings:
        serving.data.close()
        serving.cleanup.reset()
        serving.loop.reset()
