"""A small server side of the wire, independent of the package's own frames, for the tests."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
from typing import Any, Optional

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# For the tests that use the package in their own process.
sys.path.insert(0, PACKAGE)
PROCESS = os.path.join(PACKAGE, "nereid_model", "process.py")
LIMIT_SECONDS = 20.0

EXECUTE, RETURNED, RESPONSE = 1, 2, 3
START, CHECK_READY, CANCEL, STOP, REPLY, LOG_LEVEL, DUMP_STACKS, SEQUENCE_ENDED, CREDIT = 10, 11, 12, 13, 14, 17, 18, 19, 20
LISTENING, STARTED, READY, CALL, STOPPED, LOG, STACKS, CANCEL_CALL, CONTROL_MODEL, METRIC, CREDIT_CALL = (
    29,
    30,
    31,
    32,
    33,
    34,
    35,
    36,
    37,
    38,
    39,
)

TYPES = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP32": np.float32,
    "FP64": np.float64,
    "BF16": np.uint16,
}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items() if name != "BF16"}


def frame(kind: int, header: dict[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<IIQ", len(text), kind, len(body)) + text + body


def pack(tensors: dict[str, Any]) -> tuple[list[dict[str, Any]], bytes]:
    """Header items and body of arrays, of lists of bytes, or of ready (datatype, shape, bytes)."""
    items, body = [], b""
    for name, value in tensors.items():
        if isinstance(value, np.ndarray):
            datatype, shape, data = NAMES[value.dtype], value.shape, value.tobytes()
        elif isinstance(value, list):
            datatype, shape = "BYTES", (len(value),)
            data = b"".join(struct.pack("<I", len(item)) + item for item in value)
        else:
            datatype, shape, data = value
        items.append({"n": name, "t": datatype, "s": list(shape), "b": len(data)})
        if data:
            body += bytes(-len(body) % 16) + data
    return items, body


def unpack(items: list[dict[str, Any]], body: bytes, offset: int = 0) -> tuple[dict[str, Any], int]:
    """Arrays by name; BYTES as lists of bytes, None for a tensor in shared memory."""
    tensors: dict[str, Any] = {}
    for item in items:
        if "m" in item:
            tensors[item["n"]] = None
            continue
        if item["b"]:
            offset += -offset % 16
        data = body[offset : offset + item["b"]]
        offset += item["b"]
        if item["t"] == "BYTES":
            strings, at = [], 0
            while at < len(data):
                (count,) = struct.unpack_from("<I", data, at)
                strings.append(data[at + 4 : at + 4 + count])
                at += 4 + count
            tensors[item["n"]] = strings
        else:
            tensors[item["n"]] = np.frombuffer(data, TYPES[item["t"]]).reshape(item["s"])
    return tensors, offset


def receive(stream: socket.socket) -> Optional[tuple[int, dict[str, Any], bytes]]:
    head = _exactly(stream, 16)
    if head is None:
        return None
    header_bytes, kind, body_bytes = struct.unpack("<IIQ", head)
    header = json.loads(_exactly(stream, header_bytes) or b"")
    return kind, header, (_exactly(stream, body_bytes) or b"") if body_bytes else b""


def _exactly(stream: socket.socket, count: int) -> Optional[bytes]:
    data = bytearray()
    while len(data) < count:
        try:
            part = stream.recv(min(count - len(data), 1 << 20))
        except ConnectionResetError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)


class FakeServer:
    """Starts the process of one model and speaks both sockets with it."""

    def __init__(
        self,
        code: str = "",
        files: Optional[dict[str, str]] = None,
        start: bool = True,
        environment: Optional[dict[str, str]] = None,
        **settings: Any,
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="nereid-test-")
        self.model = os.path.join(self.folder, "model")
        self.version = os.path.join(self.model, "1")
        os.makedirs(self.version)
        for path, text in {"1/model.py": code, **(files or {})}.items():
            os.makedirs(os.path.dirname(os.path.join(self.model, path)), exist_ok=True)
            with open(os.path.join(self.model, path), "w") as file:
                file.write(textwrap.dedent(text))
        ours, theirs = socket.socketpair()
        ours.settimeout(LIMIT_SECONDS)
        self.control = ours
        self.sockets: list[socket.socket] = []
        self.data: Optional[socket.socket] = None
        script = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True); os.execv(sys.executable, [sys.executable, sys.argv[2]])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(theirs.fileno()), PROCESS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONWARNINGS": "ignore", **(environment or {})},
        )
        theirs.close()
        self.number = 0
        self.path = os.path.join(self.folder, "data")
        self.logs: list[list[Any]] = []
        self.settings = {
            "mode": "triton",
            "file": os.path.join(self.version, "model.py"),
            "data": self.path,
            "args": {
                "model_config": json.dumps({"name": "m", "input": [], "output": [], "max_batch_size": 0}),
                "model_instance_kind": "CPU",
                "model_instance_name": "m_0_0",
                "model_instance_device_id": "0",
                "model_repository": self.model,
                "model_version": "1",
                "model_name": "m",
            },
            "version_dir": self.version,
            "model_dir": self.model,
            **settings,
        }
        if start:
            self.started = self.start()

    def start(self) -> dict[str, Any]:
        self.tell(START, self.settings)
        self.listening = self.wait(LISTENING)[0]
        if self.settings.get("data"):
            self.sockets = [self._connect() for _ in range(1 + len(self.settings.get("threads", ())))]
            self.use_thread(0)
        return self.wait(STARTED)[0]

    def _connect(self) -> socket.socket:
        data = socket.socket(socket.AF_UNIX)
        data.settimeout(LIMIT_SECONDS)
        data.connect(self.path)
        return data

    def use_thread(self, number: int) -> None:
        """Later executions and answers are those of this thread's instance."""
        self.data = self.sockets[number]

    def tell(self, kind: int, header: dict[str, Any], body: bytes = b"") -> None:
        self.control.sendall(frame(kind, header, body))

    def wait(self, kind: int) -> tuple[dict[str, Any], bytes]:
        """Next control frame of a kind; log lines on the way are kept."""
        while True:
            came = receive(self.control)
            if came is None:
                raise AssertionError(f"the process ended: {self.error_output()}")
            if came[0] == LOG and kind != LOG:
                self.logs += came[1]["l"]
            elif came[0] != kind:
                raise AssertionError(f"expected a frame of kind {kind}, got {came[:2]}")
            else:
                return came[1], came[2]

    def error_output(self) -> str:
        self.process.wait(LIMIT_SECONDS)
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace")

    def send_execute(self, *requests: dict[str, Any]) -> int:
        """Sends an execution; each request has "inputs" and fields of the wire."""
        assert self.data is not None
        self.number += 1
        entries, body = [], b""
        for request in requests:
            fields = dict(request)
            items, part = pack(fields.pop("inputs", {}))
            if part:
                body += bytes(-len(body) % 16) + part
            entries.append({**fields, "i": items})
        self.data.sendall(frame(EXECUTE, {"x": self.number, "r": entries}, body))
        return self.number

    def send_function(self, rows: Optional[list[int]] = None, **inputs: Any) -> int:
        assert self.data is not None
        self.number += 1
        items, body = pack(inputs)
        header: dict[str, Any] = {"x": self.number, "i": items}
        if rows is not None:
            header["j"] = rows
        self.data.sendall(frame(EXECUTE, header, body))
        return self.number

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Next data frame: its kind and its header, with the outputs as "outputs"."""
        assert self.data is not None
        came = receive(self.data)
        if came is None:
            raise AssertionError(f"the process ended: {self.error_output()}")
        kind, header, body = came
        offset = 0
        for part in header.get("r", [header]):
            if "o" in part:
                part["outputs"], offset = unpack(part["o"], body, offset)
        return kind, header

    def execute(self, *requests: dict[str, Any]) -> dict[str, Any]:
        """Header of RETURNED for an execution."""
        number = self.send_execute(*requests)
        kind, header = self.answer()
        assert kind == RETURNED and header["x"] == number, (kind, header)
        return header

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Outputs of one request."""
        header = self.execute({"inputs": inputs})
        assert "r" in header and "outputs" in header["r"][0], header
        return header["r"][0]["outputs"]

    def stop(self) -> dict[str, Any]:
        self.tell(STOP, {})
        header = self.wait(STOPPED)[0]
        assert self.process.wait(LIMIT_SECONDS) == 0
        return header

    def close(self) -> None:
        self.control.close()
        for data in self.sockets:
            data.close()
        try:
            self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def in_thread(target: Any, *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread
