"""Life of a model's process: start, load, serve, stop."""

from __future__ import annotations

import atexit
import faulthandler
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, TypeVar

from .control import end_with_protocol_error, read_control
from .errors import describe_exception, escaped
from .frames import Frame, FrameSocket, Kind, ProtocolError
from .limits import limit_memory, set_death_signal
from .start import Start, parse_start

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .instance import Instance, Loading


T = TypeVar("T")


class ModelProcess:
    """One process for one instance of a model, or for several: each has a thread, the first one the main thread."""

    def __init__(self, control: FrameSocket) -> None:
        self._control = control
        self._starting: queue.SimpleQueue[Start] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._loading: Optional[Loading] = None
        self._instances: list[Instance] = []
        # Of the instances but the first one.
        self._threads: list[Executor] = []
        # Frames that came before the model's parts exist which handle them.
        self._early: list[Frame] = []
        self._handlers: dict[int, Any] = {
            Kind.LOG_LEVEL: self._early.append,
            Kind.START: self._on_start,
            Kind.STOP: self._on_stop,
            Kind.DUMP_STACKS: self._on_dump_stacks,
            Kind.CHECK_READY: self._on_check_ready,
        }

    def run(self) -> None:
        threading.Thread(
            target=read_control,
            args=(self._control, self._handlers, lambda: os._exit(1)),
            name="nereid-control",
            daemon=True,
        ).start()
        start = self._starting.get()
        if start.death_signal:
            set_death_signal()
        count = 1 + len(start.threads)
        listener = _listen(start.data, count) if start.data else None
        self._control.send(Kind.LISTENING, _describe_python())
        sockets = _accept(listener, start.data, count) if listener is not None else []
        try:
            limit_memory(start.memory_limit)
            from .instance import Loading

            loading = Loading(start, self._control, self._handlers)
            if start.mode == "autocomplete":
                fields = loading.complete_config()
            else:
                assert sockets, "START has no data socket"
                self._threads = [_thread_of(args) for args in start.threads]
                self._instances = loading.load(sockets, self._threads)
                fields = {**self._instances[0].describe(), "memory": loading.memory}
                self._loading = loading
            for frame in self._early:
                self._handlers[frame.kind](frame)
        except BaseException as error:
            from_missing = isinstance(error, ModuleNotFoundError) and error.name == "numpy"
            if from_missing:
                self._control.send(Kind.STARTED, _missing_numpy())
            else:
                from .model_file import describe_load_error

                traceback.print_exc()
                self._control.send(Kind.STARTED, describe_load_error(error))
            self._stopping.wait()
            self._exit()
        self._control.send(Kind.STARTED, {"ok": 1, **fields})
        if self._instances:
            if self._stopping.is_set():
                self._end_receiving()
            self._in_each(self._serve)
        self._stopping.wait()
        self._stop()

    def _in_each(self, task: Callable[[Instance], T]) -> list[T]:
        """Runs a task for each instance in its thread."""
        others = [thread.submit(task, instance) for thread, instance in zip(self._threads, self._instances[1:])]
        return [task(self._instances[0]), *(other.result() for other in others)]

    def _serve(self, instance: Instance) -> None:
        try:
            instance.serve()
        except ProtocolError as error:
            end_with_protocol_error(error)
        except OSError:
            os._exit(1)
        if not self._stopping.is_set():
            # The server closed the data socket without a word: it is going, or gave this process up.
            os._exit(1)
        instance.serving.finish()

    def _stop(self) -> None:
        fields: dict[str, Any] = {}
        if self._loading is not None:
            self._loading.finalizing()
            errors = [error for error in self._in_each(_finalize) if error is not None]
            if errors:
                fields["e"] = "\n".join(errors)
            self._loading.finish_cleanup()
        self._control.send(Kind.STOPPED, fields)
        self._exit()

    def _end_receiving(self) -> None:
        for instance in self._instances:
            # A reader that has stopped must not keep the process.
            instance.serving.open.release()
            instance.serving.data.end_receiving()

    def _exit(self) -> None:
        # Interpreter shutdown is skipped: extension modules and daemon threads tend to crash in it.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(0)

    def _on_start(self, frame: Frame) -> None:
        self._starting.put(parse_start(frame.header))

    def _on_stop(self, frame: Frame) -> None:
        self._stopping.set()
        self._end_receiving()

    def _on_check_ready(self, frame: Frame) -> None:
        number = frame.header["n"]

        def answer(why: Optional[str]) -> None:
            fields: dict[str, Any] = {"n": number, "ready": why is None}
            if why is not None:
                fields["why"] = why
            self._control.send(Kind.READY, fields)

        if not self._instances:
            answer("The model is not loaded yet.")
        else:
            _ask_all(self._instances, answer)

    def _on_dump_stacks(self, frame: Frame) -> None:
        self._control.send(Kind.STACKS, {"n": frame.header["n"], "text": escaped(dump_stacks())})


def _ask_all(instances: list[Instance], on_result: Callable[[Optional[str]], None]) -> None:
    """Gives `on_result` None if all instances are ready, or why one is not, once each has answered."""
    results: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()
    left = threading.Semaphore(len(instances) - 1)

    def answer(why: Optional[str]) -> None:
        results.put(why)
        if not left.acquire(blocking=False):
            on_result(next((text for text in (results.get() for _ in instances) if text is not None), None))

    for instance in instances:
        instance.readiness.answer(answer)


def dump_stacks() -> str:
    """Stacks of all threads but the calling one."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for identity, frame in sys._current_frames().items():
        if identity != threading.get_ident():
            stack = "".join(traceback.format_stack(frame))
            parts.append(f"Thread {names.get(identity, identity)} (most recent call last):\n{stack}")
    return "\n".join(parts)


def run_process(descriptor: int) -> None:
    """Runs a model's process on the inherited control socket; never returns."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler and not SIG_IGN, which programs that the model starts would inherit.
        signal.signal(number, lambda *_: None)
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    for stream in (sys.stdout, sys.stderr):
        # A line must reach the log before the process dies.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True, errors="backslashreplace")
    os.set_inheritable(descriptor, False)
    control = socket.socket(fileno=descriptor)
    control.setblocking(True)
    ModelProcess(FrameSocket(control)).run()


def _thread_of(args: dict[str, str]) -> Executor:
    """The thread of an instance, from its initialize to its finalize: objects of some packages belong to a thread."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, thread_name_prefix=args.get("model_instance_name", ""))


def _finalize(instance: Instance) -> Optional[str]:
    """Text of the exception of an instance's finalize; None without one."""
    try:
        instance.finalize()
    except BaseException as error:
        traceback.print_exc()
        return describe_exception(error)
    return None


def _listen(path: str, count: int) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(count)
    return listener


def _accept(listener: socket.socket, path: str, count: int) -> list[socket.socket]:
    """Connections for the instances, in their order: the server connects one after the other."""
    sockets = [listener.accept()[0] for _ in range(count)]
    listener.close()
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return sockets


def _describe_python() -> dict[str, Any]:
    try:
        import numpy

        version: Optional[str] = numpy.__version__
    except ImportError:
        version = None
    return {
        "pid": os.getpid(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": version,
        "executable": sys.executable,
    }


def _missing_numpy() -> dict[str, Any]:
    version = ".".join(map(str, sys.version_info[:3]))
    return {
        "missing": "numpy",
        "e": f"The package 'numpy' is missing in {sys.executable} (Python {version}). "
        f"To install it: {sys.executable} -m pip install numpy",
    }
