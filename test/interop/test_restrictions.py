"""A server that keeps parts of the protocol for those who send a secret header."""

import numpy as np
from cases import STATUS, Case, every_client, grpc_clients
from test_streams import Streams

NUMBERS = np.zeros((1, 16), np.int32)


class Secrets:
    def header(self, key, value):
        return {key if self.protocol == "http" else f"triton-grpc-protocol-{key}": value}

    def refusal(self, key):
        if self.protocol == "http":
            return f"This API is restricted, expecting header '{key}'"
        return f"This protocol is restricted, expecting header 'triton-grpc-protocol-{key}'"


@every_client
class Restrictions(Secrets, Case):
    server = "restricted"

    def simple(self):
        return {"model_name": "simple", "inputs": [self.input("INPUT0", NUMBERS), self.input("INPUT1", NUMBERS)]}

    async def test_what_is_not_restricted(self):
        self.assertIs(await self.call("is_server_ready"), True)
        self.assertIs(await self.call("is_model_ready", "simple"), True)

    async def test_with_the_secret(self):
        user = self.header("user-key", "a secret")
        await self.call("infer", **self.simple(), headers=user)
        await self.call("get_server_metadata", headers=user)
        await self.call("get_model_metadata", "simple", headers=user)
        await self.call("get_model_config", "simple", headers=user)
        await self.call("get_inference_statistics", "simple", headers=self.header("admin-key", "another"))

    async def test_without_it_or_with_another(self):
        for headers in [None, self.header("user-key", "another"), self.header("admin-key", "another")]:
            for method, arguments in [
                ("infer", self.simple()),
                ("get_server_metadata", {}),
                ("get_model_metadata", {"model_name": "simple"}),
                ("get_model_config", {"model_name": "simple"}),
            ]:
                with self.subTest(method, headers=headers):
                    text = await self.failure("restricted", self.call(method, **arguments, headers=headers))
                    self.assertEqual(text, self.refusal("user-key"))
        text = await self.failure("restricted", self.call("get_inference_statistics"))
        self.assertEqual(text, self.refusal("admin-key"))


@grpc_clients
class RestrictedStreams(Secrets, Streams):
    server = "restricted"

    async def test_with_the_secret(self):
        answers = await self.conversation([self.simple(1)], headers=self.header("user-key", "a secret"))
        self.assertEqual(self.outputs(answers), [2])

    async def test_without_it(self):
        # With no request: where the refusal comes while one is written, grpc.aio now and then reports its own INTERNAL.
        self.assertEqual(await self.end(self.conversation([])), STATUS["grpc"]["restricted"])
