"""ModelStreamInfer: many requests on one stream, results in order, failures in band, decoupled models."""

import asyncio
import contextlib
import queue

import grpc
import numpy as np
import tritonclient.grpc
from cases import STATUS, Case, every_client, eventually, grpc_clients, metric
from tritonclient.utils import InferenceServerException


def numbers(*values):
    return np.array(values, np.int32)


class Streams(Case):
    async def conversation(self, requests, **options):
        """All results and errors of a stream with these requests, each the arguments of an `infer`, until its end."""
        if self.module is not tritonclient.grpc:

            async def each():
                for request in requests:
                    yield request

            return [answer async for answer in self.client.stream_infer(each(), **options)]
        answers = queue.Queue()
        self.client.start_stream(lambda result, error: answers.put((result, error)), **options)
        # A stream that has ended takes no more requests; its end is among the answers.
        with contextlib.suppress(InferenceServerException):
            for request in requests:
                self.client.async_stream_infer(**request)
        self.client.stop_stream()
        return list(answers.queue)

    async def end(self, conversation):
        """The status of a stream that ends with a failure: an answer, or an exception for an asynchronous client."""
        try:
            *_, (_, error) = await conversation
            return error.status()
        except grpc.RpcError as error:
            return str(error.code())

    def simple(self, number, **options):
        row = np.full((1, 16), number, np.int32)
        return {"model_name": "simple", "inputs": [self.input("INPUT0", row), self.input("INPUT1", row)], **options}

    def counting(self, *values, **options):
        return {"model_name": "counting", "inputs": [self.input("IN", numbers(*values))], **options}

    def never(self, **options):
        return {"model_name": "never", "inputs": [self.input("X", numbers(0))], **options}

    def outputs(self, answers):
        """Of each answer the first number of its only output, or the text of its error."""
        return [error.message() if error else self.output_of(result) for result, error in answers]

    def output_of(self, result):
        outputs = result.get_response().outputs
        return result.as_numpy(outputs[0].name).flatten()[0].item() if outputs else None

    def ids(self, answers):
        return [result.get_response().id for result, _ in answers]

    def finals(self, answers):
        return [result.get_response().parameters["triton_final_response"].bool_param for result, _ in answers]


@grpc_clients
class OneResponse(Streams):
    async def test_results_come_in_the_order_of_the_requests(self):
        answers = await self.conversation([self.simple(number, request_id=str(number)) for number in range(200)])
        self.assertEqual(self.outputs(answers), [2 * number for number in range(200)])
        self.assertEqual(self.ids(answers), [str(number) for number in range(200)])

    async def test_each_is_the_last_of_its_request(self):
        self.assertEqual(self.finals(await self.conversation([self.simple(1), self.simple(2)])), [True, True])

    async def test_no_request_at_all(self):
        self.assertEqual(await self.conversation([]), [])

    async def test_failures_are_in_their_place_and_the_stream_goes_on(self):
        text = self.input("TEXT", np.array([b"too bad"], dtype=np.object_))
        requests = [
            self.simple(1),
            self.simple(2, request_id="two") | {"inputs": [self.input("INPUT0", np.zeros((1, 16), np.int32))]},
            self.simple(3),
            self.simple(4) | {"model_name": "absent"},
            {"model_name": "failing", "inputs": [text]},
            self.simple(5),
        ]
        first, missing, second, absent, failed, last = self.outputs(await self.conversation(requests))
        self.assertEqual([first, second, last], [2, 6, 10])
        self.assertIn("[request id: two] expected 2 inputs but got 1 inputs for model 'simple'", missing)
        self.assertIn("Request for unknown model: 'absent' is not found", absent)
        self.assertIn("too bad", failed)

    async def test_with_triton_grpc_error_a_failure_ends_the_stream_with_its_status(self):
        requests = [self.simple(1), self.simple(2) | {"model_name": "absent"}]
        status = await self.end(self.conversation(requests, headers={"triton_grpc_error": "true"}))
        self.assertEqual(status, STATUS["grpc"]["not found"])

    async def test_parameters_and_outputs_of_each_request(self):
        requests = [
            self.simple(1, outputs=[self.output("OUTPUT1")], sequence_id=7, sequence_start=True, priority=1),
            self.simple(2, parameters={"key": "value"}, timeout=60_000_000),
        ]
        (first, _), (second, _) = await self.conversation(requests)
        self.assertIsNone(first.as_numpy("OUTPUT0"))
        self.assertEqual(len(second.get_response().outputs), 2)

    async def test_compressed(self):
        for algorithm in ["gzip", "deflate"]:
            requests = [self.simple(number) for number in range(3)]
            self.assertEqual(
                self.outputs(await self.conversation(requests, compression_algorithm=algorithm)), [0, 2, 4]
            )

    async def test_large(self):
        tensor = np.random.default_rng(1).integers(0, 256, 5 * 2**20, np.uint8)
        request = {"model_name": "large", "inputs": [self.input("X", tensor)]}
        answers = await self.conversation([request, request])
        for result, _ in answers:
            self.assert_same(result.as_numpy("Y"), tensor)


@grpc_clients
class ForwardedHeaders(Streams):
    server = "open"

    async def test_are_parameters_of_every_request(self):
        request = {"model_name": "repeating", "inputs": [self.input("X", numbers(0))]}
        for result, _ in await self.conversation([request, request], headers={"x-forwarded-user": "a user"}):
            self.assertEqual(result.get_response().parameters["x-forwarded-user"].string_param, "a user")


@grpc_clients
class Decoupled(Streams):
    async def test_any_number_of_responses(self):
        requests = [
            self.counting(5, 6, 7, request_id="a"),
            self.counting(request_id="b"),
            self.counting(8, request_id="c"),
        ]
        answers = await self.conversation(requests)
        self.assertEqual(self.outputs(answers), [5, 6, 7, 8])
        self.assertEqual(self.ids(answers), ["a", "a", "a", "c"])
        self.assertEqual(self.finals(answers), [False] * 4)

    async def test_many_responses(self):
        answers = await self.conversation([self.counting(*range(2000))])
        self.assertEqual(self.outputs(answers), list(range(2000)))

    async def test_a_failure_after_the_first_response(self):
        first, failed, last = self.outputs(await self.conversation([self.counting(1, -2, 3), self.counting(4)]))
        self.assertEqual([first, last], [1, 4])
        self.assertIn("-2 is negative", failed)

    async def test_is_declared(self):
        config = (await self.message("get_model_config", "counting"))["config"]
        self.assertEqual(config["model_transaction_policy"], {"decoupled": True})

    async def test_responses_are_counted(self):
        async def successes():
            [statistics] = (await self.message("get_inference_statistics", "counting"))["model_stats"]
            responses = statistics.get("response_stats", {})
            return [int(responses.get(str(index), {}).get("success", {}).get("count", 0)) for index in range(2)]

        first, second = await successes()
        await self.conversation([self.counting(1, 2)])
        self.assertEqual(await successes(), [first + 1, second + 1])


@grpc_clients
class Cancellation(Streams):
    def cancelled(self):
        return metric("nv_inference_request_failure", model="never", version="1", reason="CANCELED")

    def pending(self):
        return metric("nv_inference_pending_request_count", model="never", version="1")

    async def in_flight(self):
        """Whether the server has the three requests: one is in the hands of the model."""
        return await eventually(lambda: self.pending() == 2)

    async def cancel(self):
        if self.module is tritonclient.grpc:
            answers = queue.Queue()
            self.client.start_stream(lambda result, error: answers.put(error))
            for _ in range(3):
                self.client.async_stream_infer(**self.never())
            self.assertTrue(await self.in_flight())
            self.client.stop_stream(cancel_requests=True)
            return answers.get(timeout=10).status()

        async def requests():
            for _ in range(3):
                yield self.never()
            await asyncio.Event().wait()

        stream = self.client.stream_infer(requests())
        self.assertTrue(await self.in_flight())
        stream.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await stream.__anext__()
        return STATUS["grpc"]["cancelled"]

    async def test_takes_back_what_is_in_flight(self):
        before = self.cancelled()
        self.assertEqual(await self.cancel(), STATUS["grpc"]["cancelled"])
        self.assertTrue(await eventually(lambda: self.cancelled() == before + 3))
        # The client may begin another.
        self.assertEqual(self.outputs(await self.conversation([self.simple(1)])), [2])

    async def test_a_timeout_ends_the_stream(self):
        self.assertEqual(
            await self.end(self.conversation([self.never()], stream_timeout=0.3)), STATUS["grpc"]["deadline"]
        )
        self.assertTrue(await eventually(lambda: self.pending() == 0))


class EmptyFinals(Streams):
    """Only the synchronous client can ask for a last response that is empty."""

    protocol = "grpc"
    module = tritonclient.grpc

    async def test_say_that_there_is_no_more(self):
        answers = await self.conversation(
            [self.counting(5, 6, enable_empty_final_response=True), self.counting(enable_empty_final_response=True)]
        )
        self.assertEqual(self.outputs(answers), [5, 6, None, None])
        self.assertEqual(self.finals(answers), [False, False, True, True])

    async def test_are_not_needed_where_there_is_one_response(self):
        answers = await self.conversation([self.simple(1, enable_empty_final_response=True)])
        self.assertEqual((self.outputs(answers), self.finals(answers)), ([2], [True]))

    async def test_one_stream_at_a_time(self):
        self.client.start_stream(lambda result, error: None)
        with self.assertRaises(InferenceServerException):
            self.client.start_stream(lambda result, error: None)
        self.client.stop_stream()


@every_client
class Unary(Case):
    async def test_decoupled_models_are_refused(self):
        text = await self.failure("unsupported", self.infer("counting", [self.input("IN", numbers(1))]))
        self.assertIn("support models with decoupled transaction policy", text)
