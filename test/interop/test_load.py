"""What load generators do: several callers, each asking again as soon as it has its answer, and statistics that add up."""

import asyncio
import inspect

import numpy as np
from cases import Case, every_client

CALLERS = 8
REQUESTS = 25


@every_client
class Load(Case):
    def row(self, caller, request):
        return np.full((1, 16), caller * REQUESTS + request, np.int32)

    def ask(self, client, caller, request):
        row = self.row(caller, request)
        return client.infer("simple", [self.input("INPUT0", row), self.input("INPUT1", row)])

    def assert_answered(self, result, caller, request):
        self.assert_same(result.as_numpy("OUTPUT0"), 2 * self.row(caller, request))

    async def call_asynchronously(self, caller):
        async with self.connect() as client:
            for request in range(REQUESTS):
                self.assert_answered(await self.ask(client, caller, request), caller, request)

    def call_synchronously(self, caller):
        # In a thread of its own, and with a client of that thread.
        with self.connect() as client:
            for request in range(REQUESTS):
                self.assert_answered(self.ask(client, caller, request), caller, request)

    async def counted(self):
        """Rows, executions and requests of the model, and the sum of its batch statistics."""
        [statistics] = (await self.message("get_inference_statistics", "simple"))["model_stats"]
        stats = statistics["inference_stats"]
        counts = [statistics["inference_count"], statistics["execution_count"], stats["success"]["count"]]
        batches = sum(int(batch["compute_infer"]["count"]) for batch in statistics["batch_stats"])
        return np.array([int(count) for count in counts] + [batches])

    async def test_the_statistics_add_up(self):
        await self.settled(self.ask(self.client, 0, 0))
        before = await self.counted()
        if inspect.iscoroutinefunction(self.client.infer):
            callers = [self.call_asynchronously(caller) for caller in range(CALLERS)]
        else:
            callers = [asyncio.to_thread(self.call_synchronously, caller) for caller in range(CALLERS)]
        await asyncio.gather(*callers)
        rows, executions, requests, batches = await self.counted() - before
        self.assertEqual((rows, requests), (CALLERS * REQUESTS, CALLERS * REQUESTS))
        self.assertEqual(executions, batches)
        self.assertLessEqual(executions, rows)
