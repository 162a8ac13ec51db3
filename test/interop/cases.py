"""
The clients as one, so that what a test says once is said by each of them: `@every_client` makes a test case of every
client, `@http_clients` and `@grpc_clients` of those of one protocol. No test is in here.
"""

import asyncio
import inspect
import json
import os
import sys
import unittest
import urllib.request

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

# What server.ts has printed: the ports of each of its servers, and where the files for TLS are.
_SERVING = json.loads(os.environ["NEREID_SERVING"])
SERVERS = _SERVING["servers"]
CERTIFICATES = _SERVING["certificates"]

# What a failure is called by each protocol.
STATUS = {
    "http": {
        "invalid": "400",
        "restricted": "403",
        "not found": "404",
        "exists": "400",
        "failed": "500",
        "region failed": "400",
        "unsupported": "501",
        "unavailable": "503",
    },
    "grpc": {
        "invalid": "StatusCode.INVALID_ARGUMENT",
        "not found": "StatusCode.NOT_FOUND",
        "exists": "StatusCode.ALREADY_EXISTS",
        "failed": "StatusCode.INTERNAL",
        "region failed": "StatusCode.INTERNAL",
        "unsupported": "StatusCode.UNIMPLEMENTED",
        "unavailable": "StatusCode.UNAVAILABLE",
        "restricted": "StatusCode.UNAVAILABLE",
        "deadline": "StatusCode.DEADLINE_EXCEEDED",
        "cancelled": "StatusCode.CANCELLED",
    },
}


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a client. Its calls are awaited whether the client is asynchronous or not."""

    protocol: str
    module: object
    server = "plain"

    async def asyncSetUp(self):
        self.client = self.connect()
        self.addAsyncCleanup(self.call, "close")

    def connect(self, **options):
        return self.module.InferenceServerClient(f"127.0.0.1:{SERVERS[self.server][self.protocol]}", **options)

    async def settled(self, value):
        return await value if inspect.isawaitable(value) else value

    async def call(self, method, *arguments, **options):
        return await self.settled(getattr(self.client, method)(*arguments, **options))

    async def infer(self, model, inputs, **options):
        return await self.call("infer", model, inputs, **options)

    async def message(self, method, *arguments, **options):
        """What HTTP answers as JSON and gRPC as a message, as JSON."""
        if self.protocol == "grpc":
            options["as_json"] = True
        return await self.call(method, *arguments, **options)

    def input(self, name, array, binary=True, datatype=None):
        tensor = self.module.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
        if self.protocol == "grpc":
            return tensor.set_data_from_numpy(array)
        return tensor.set_data_from_numpy(array, binary_data=binary)

    def output(self, name, binary=True, class_count=0):
        options = {"binary_data": binary} if self.protocol == "http" else {}
        return self.module.InferRequestedOutput(name, class_count=class_count, **options)

    async def failure(self, kind, awaitable):
        """The text of a failure that has the protocol's status for its kind."""
        with self.assertRaises(InferenceServerException) as raised:
            await awaitable
        self.assertEqual(raised.exception.status(), STATUS[self.protocol][kind], raised.exception.message())
        return raised.exception.message()

    def assert_same(self, actual, expected):
        """The same datatype, shape and elements, bit by bit."""
        self.assertEqual((actual.dtype, actual.shape), (expected.dtype, expected.shape))
        if expected.dtype == np.object_:
            self.assertEqual(actual.tolist(), expected.tolist())
        else:
            self.assertEqual(actual.tobytes(), expected.tobytes())


CLIENTS = {
    "Http": ("http", tritonclient.http),
    "HttpAio": ("http", tritonclient.http.aio),
    "Grpc": ("grpc", tritonclient.grpc),
    "GrpcAio": ("grpc", tritonclient.grpc.aio),
}


def _clients(*names):
    def decorate(case):
        """Puts a case for each client beside this one, which thereby is none itself."""
        namespace = vars(sys.modules[case.__module__])
        for name in names:
            protocol, module = CLIENTS[name]
            members = {"protocol": protocol, "module": module, "__module__": case.__module__}
            namespace[case.__name__ + name] = type(case.__name__ + name, (case,), members)
        return None

    return decorate


every_client = _clients(*CLIENTS)
http_clients = _clients("Http", "HttpAio")
grpc_clients = _clients("Grpc", "GrpcAio")


def url(path, port="http", server="plain"):
    return f"http://127.0.0.1:{SERVERS[server][port]}{path}"


def post(path, body, headers={}, server="plain"):
    """A request as anybody sends one who has no client."""
    return urllib.request.urlopen(urllib.request.Request(url(path, server=server), body, headers), timeout=60)


def metric(name, **labels):
    """The value of one of the server's metrics."""
    with urllib.request.urlopen(url("/metrics", "metrics"), timeout=60) as response:
        lines = response.read().decode().splitlines()
    series = name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "} "
    return next(float(line.removeprefix(series)) for line in lines if line.startswith(series))


async def eventually(condition):
    """True as soon as it holds; what happens on a server has no other sign for a client."""
    for _ in range(500):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False
