"""Requests whose caller does not wait: timeouts and cancellation reach the server, which lets go of the request."""

import asyncio
import queue

import numpy as np
import tritonclient.grpc
import tritonclient.http
from cases import Case, eventually, every_client, grpc_clients, metric

NUMBER = np.zeros(1, np.int32)


def cancelled():
    return metric("nv_inference_request_failure", model="never", version="1", reason="CANCELED")


def pending():
    return metric("nv_inference_pending_request_count", model="never", version="1")


@grpc_clients
class Timeouts(Case):
    async def test_a_deadline(self):
        text = await self.failure("deadline", self.infer("never", [self.input("X", NUMBER)], client_timeout=0.2))
        self.assertIn("Deadline", text)

    async def test_a_deadline_that_is_long_enough(self):
        self.assertIs(await self.call("is_server_live", client_timeout=30), True)

    async def test_requests_leave_the_server_with_their_deadline(self):
        before = pending()
        for _ in range(3):
            await self.failure("deadline", self.infer("never", [self.input("X", NUMBER)], client_timeout=0.1))
        self.assertTrue(await eventually(lambda: pending() == before))


@every_client
class Cancellation(Case):
    """A request that is taken back counts as cancelled, however its client has it."""

    def connect(self):
        options = {"network_timeout": 0.3} if self.module is tritonclient.http else {}
        return super().connect(**options)

    async def begin_and_cancel(self):
        inputs = [self.input("X", NUMBER)]
        if self.module is tritonclient.http:
            with self.assertRaises(Exception):
                self.client.infer("never", inputs)
        elif self.module is tritonclient.grpc:
            answers = queue.Queue()
            call = self.client.async_infer("never", inputs, lambda result, error: answers.put(error))
            await asyncio.sleep(0.2)
            call.cancel()
            error = answers.get(timeout=10)
            self.assertEqual(
                (error.status(), error.message()), ("StatusCode.CANCELLED", "Locally cancelled by application!")
            )
        else:
            task = asyncio.ensure_future(self.client.infer("never", inputs))
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

    async def test_it_is_counted(self):
        before = cancelled()
        await self.begin_and_cancel()
        self.assertTrue(await eventually(lambda: cancelled() == before + 1))
        self.assertTrue(await eventually(lambda: pending() == 0))
