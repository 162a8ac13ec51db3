"""How requests travel: compressed, large, many at a time."""

import asyncio
import inspect
import queue

import numpy as np
import tritonclient.http
from cases import Case, every_client, grpc_clients, http_clients

MEGABYTE = 2**20


def numbers(size):
    """Bytes that do not compress to nothing."""
    return np.random.default_rng(size).integers(0, 256, size, np.uint8)


@every_client
class Sizes(Case):
    async def echoed(self, tensor, **options):
        return (await self.infer("large", [self.input("X", tensor)], **options)).as_numpy("Y")

    async def test_more_than_four_megabytes(self):
        tensor = numbers(5 * MEGABYTE)
        self.assert_same(await self.echoed(tensor), tensor)

    async def test_64_megabytes(self):
        # Over HTTP, a body of 64 MiB is the most by default.
        tensor = numbers(64 * MEGABYTE if self.protocol == "grpc" else 63 * MEGABYTE)
        self.assert_same(await self.echoed(tensor), tensor)

    async def test_compressed_requests_and_responses(self):
        for size in [0, 10, 5 * MEGABYTE]:
            tensor = numbers(size)
            for algorithm in ["gzip", "deflate"]:
                options = (
                    [{"compression_algorithm": algorithm}]
                    if self.protocol == "grpc"
                    else [
                        {"request_compression_algorithm": algorithm},
                        {"response_compression_algorithm": algorithm},
                        {"request_compression_algorithm": algorithm, "response_compression_algorithm": "gzip"},
                    ]
                )
                for option in options:
                    with self.subTest(size=size, **option):
                        self.assert_same(await self.echoed(tensor, **option), tensor)


@grpc_clients
class CompressedResponses(Case):
    """What gRPC accepts it is sent, by a server that is asked to."""

    server = "open"

    async def test_are_read(self):
        for tensor in [numbers(0), numbers(10), np.zeros(MEGABYTE, np.uint8), numbers(5 * MEGABYTE)]:
            result = await self.infer("large", [self.input("X", tensor)], compression_algorithm="gzip")
            self.assert_same(result.as_numpy("Y"), tensor)


@http_clients
class Limits(Case):
    async def test_a_body_above_the_limit(self):
        tensor = np.zeros(65 * MEGABYTE, np.uint8)
        infer = self.infer("large", [self.input("X", tensor)])
        self.assertIn("exceeds the maximum allowed", await self.failure("invalid", infer))

    async def test_the_limit_holds_after_decompression(self):
        tensor = np.zeros(65 * MEGABYTE, np.uint8)
        infer = self.infer("large", [self.input("X", tensor)], request_compression_algorithm="gzip")
        self.assertIn("exceeds the maximum allowed", await self.failure("invalid", infer))


@every_client
class Concurrency(Case):
    """Many requests at a time from one client, each with an answer of its own, over few connections."""

    def connect(self):
        options = {"concurrency": 8} if self.module is tritonclient.http else {}
        return super().connect(**options)

    def inputs(self, number):
        return [
            self.input("INPUT0", np.full((1, 16), number, np.int32)),
            self.input("INPUT1", np.ones((1, 16), np.int32)),
        ]

    async def results(self, count):
        """The results of so many requests, in their order, and as each client has it."""
        if inspect.iscoroutinefunction(self.client.infer):
            return await asyncio.gather(*[self.client.infer("simple", self.inputs(number)) for number in range(count)])
        if self.protocol == "http":
            asked = [self.client.async_infer("simple", self.inputs(number)) for number in range(count)]
            return [request.get_result() for request in asked]
        answers = queue.Queue()
        for number in range(count):
            callback = lambda result, error, number=number: answers.put((number, result, error))
            self.client.async_infer("simple", self.inputs(number), callback)
        done = sorted([answers.get(timeout=30) for _ in range(count)], key=lambda answer: answer[0])
        self.assertEqual([error for _, _, error in done], [None] * count)
        return [result for _, result, _ in done]

    async def test_each_request_gets_its_own_answer(self):
        for number, result in enumerate(await self.results(100)):
            self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[number + 1] * 16])
