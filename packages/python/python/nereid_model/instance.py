"""Instances of a loaded model, and how a process makes them."""

from __future__ import annotations

import inspect
import re
import signal
import socket
from typing import Any, Callable, Optional

from .buffers import Buffers
from .cleanup import Cleanup
from .config import ModelConfig
from .errors import TritonModelException
from .fork_relay import ForkRelay
from .frames import Frame, FrameSocket, Kind
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
    """One instance: its executor, its readiness and its end."""

    __slots__ = ("_finalize", "_host", "_style", "executor", "readiness")

    def __init__(
        self, executor: Executor, readiness: Readiness, style: str, finalize: Callable[[], None], host: ServerHost
    ) -> None:
        self.executor = executor
        self.readiness = readiness
        self._style = style
        self._finalize = finalize
        self._host = host

    def describe(self) -> dict[str, Any]:
        """Fields of STARTED."""
        return {"mode": self._style, "has_ready": self.readiness.checks, "maps": can_map()}

    def finalize(self) -> None:
        self._host.phase = Phase.FINALIZE
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
        # Where the server finds the memory that it may share with this process.
        self.memory: Optional[dict[str, Any]] = None

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
        return {"config": completed.as_dict()}

    def load(self, data: socket.socket) -> tuple[Serving, list[Instance]]:
        """Imports and initializes the model."""
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            data.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        shared = SharedBodies.make()
        frames = FrameSocket(data, self._buffers.take, shared, executes=True)
        serving = Serving(self._start, self._host, frames, self._buffers, self._cleanup)
        self._handle_requests(serving)
        if shared is not None:
            self.memory = shared.describe()
            self._handlers[Kind.SHARED] = lambda _, shared=shared: shared.opened()
        ForkRelay(self._host, self._buffers, lambda: _reset_in_fork(serving), shared).install()
        module = self._import()
        make = self._make_function if self._start.mode == "function" else self._make_model
        instances = [make(module, serving, number) for number in range(self._start.threads)]
        self._host.phase = Phase.SERVE
        return serving, instances

    def _import(self) -> Any:
        extend_path(self._start)
        import_api()
        return import_model(self._start.file, self._start.module, self._start.version_dir)

    def _handle_requests(self, serving: Serving) -> None:
        def cancel(frame: Frame) -> None:
            serving.open.cancel(frame.header["x"], frame.header["q"])

        self._handlers[Kind.CANCEL] = cancel

    def _make_model(self, module: Any, serving: Serving, number: int) -> Instance:
        model = model_class(module)()
        args = instance_args(self._start.args, number)
        initialize = optional_method(model, "initialize")
        if initialize is not None:
            result = initialize(args)
            if hasattr(result, "__await__"):
                serving.loop.run(result)
        readiness = Readiness(optional_method(model, "is_ready"), args.get("model_instance_name", ""), serving.loop)
        finalize = optional_method(model, "finalize")
        return Instance(
            TritonExecutor(model, self._start),
            readiness,
            style_of(optional_method(model, "execute")),
            finalize or (lambda: None),
            self._host,
        )

    def _make_function(self, module: Any, serving: Serving, number: int) -> Instance:
        from .functions import FunctionExecutor, bind_function

        function = bind_function(module, self._start)
        readiness = Readiness(optional_method(module, "is_ready"), self._start.instance_name, serving.loop)
        return Instance(
            FunctionExecutor(function, self._start), readiness, style_of(function.call), lambda: None, self._host
        )


def instance_args(args: dict[str, str], number: int) -> dict[str, str]:
    """Arguments of initialize for the instance of a thread: the last number of the instance's name counts up."""
    name = re.fullmatch(r"(.*_)(\d+)", args.get("model_instance_name", ""))
    if name is None or number == 0:
        return dict(args)
    return {**args, "model_instance_name": f"{name.group(1)}{int(name.group(2)) + number}"}


def style_of(function: Optional[Callable[..., Any]]) -> str:
    """How a function answers: "sync", "async", "generator" or "async-generator"."""
    if inspect.isasyncgenfunction(function):
        return "async-generator"
    if inspect.iscoroutinefunction(function):
        return "async"
    return "generator" if inspect.isgeneratorfunction(function) else "sync"


def _reset_in_fork(serving: Serving) -> None:
    """Releases in a fork what belongs to its parent; SIGTERM works again, since pools of processes end by it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    serving.data.close()
    serving.cleanup.reset()
    serving.loop.reset()
