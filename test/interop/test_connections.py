"""gRPC connections that ping, and those that a server ends because they are old: calls go on."""

import asyncio
import time

import numpy as np
import tritonclient.grpc
from cases import Case, grpc_clients
from test_streams import Streams, numbers


@grpc_clients
class Pinging(Case):
    def connect(self):
        options = tritonclient.grpc.KeepAliveOptions(
            keepalive_time_ms=100, keepalive_permit_without_calls=True, http2_max_pings_without_data=0
        )
        return super().connect(keepalive_options=options)

    async def test_too_many_pings_end_a_connection_and_the_client_makes_another(self):
        call = self.infer("never", [self.input("X", numbers(0))], client_timeout=60)
        # 11 is HTTP/2's ENHANCE_YOUR_CALM.
        self.assertRegex(await self.failure("unavailable", call), "(?i)goaway received; error code: 11")
        self.assertIs(await self.call("is_server_live"), True)


@grpc_clients
class Old(Streams):
    server = "brief"

    async def test_no_call_is_lost_with_a_connection(self):
        end = time.monotonic() + 1
        while time.monotonic() < end:
            row = np.ones((1, 16), np.int32)
            await self.infer("simple", [self.input("INPUT0", row), self.input("INPUT1", row)])
            await asyncio.sleep(0.01)

    async def test_a_stream_goes_on(self):
        async def requests():
            for number in range(5):
                yield self.simple(number)
                await asyncio.sleep(0.2)

        if self.module is not tritonclient.grpc:
            answers = [answer async for answer in self.client.stream_infer(requests())]
        else:
            answers = []
            self.client.start_stream(lambda result, error: answers.append((result, error)))
            async for request in requests():
                self.client.async_stream_infer(**request)
            self.client.stop_stream()
        self.assertEqual(self.outputs(answers), [0, 2, 4, 6, 8])
