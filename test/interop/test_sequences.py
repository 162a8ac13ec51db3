"""Sequences: ids of both kinds, START and END, what is refused, and streams of several sequences."""

import asyncio
import itertools

import numpy as np
from cases import Case, every_client, grpc_clients
from test_streams import Streams

NUMBERS = itertools.count(1)


class Sequence:
    """The calls of one sequence, whose id no other test has."""

    def __init__(self, case, kind=int):
        self.case = case
        self.id = kind(next(NUMBERS))

    def request(self, value, start=False, end=False):
        row = self.case.input("VALUE", np.array([[value]], np.int32))
        return {
            "model_name": "sums",
            "inputs": [row],
            "sequence_id": self.id,
            "sequence_start": start,
            "sequence_end": end,
        }

    async def add(self, value, **flags):
        result = await self.case.call("infer", **self.request(value, **flags))
        return result.as_numpy("TOTAL").item()


def not_started(sequence):
    return (
        f"inference request for sequence {sequence.id} to model 'sums' must specify the START flag on the first "
        "request of the sequence"
    )


@every_client
class Sequences(Case):
    async def test_each_sequence_has_its_own_sum(self):
        for kind in [int, str]:
            one, other = Sequence(self, kind), Sequence(self, kind)
            self.assertEqual(await one.add(1, start=True), 1)
            self.assertEqual(await other.add(10, start=True), 10)
            self.assertEqual(await one.add(2), 3)
            self.assertEqual(await other.add(20, end=True), 30)
            self.assertEqual(await one.add(3, end=True), 6)

    async def test_a_number_and_its_digits_are_different_sequences(self):
        number = Sequence(self)
        digits = Sequence(self, str)
        digits.id = str(number.id)
        self.assertEqual(await number.add(1, start=True), 1)
        self.assertEqual(await digits.add(10, start=True), 10)
        self.assertEqual(await number.add(1, end=True), 2)
        self.assertEqual(await digits.add(10, end=True), 20)

    async def test_large_numbers_and_long_strings(self):
        for name in [2**63 - 1, "x" * 128, "é€😀"]:
            sequence = Sequence(self)
            sequence.id = name
            self.assertEqual(await sequence.add(1, start=True), 1)
            self.assertEqual(await sequence.add(2, end=True), 3)

    async def test_start_begins_anew(self):
        sequence = Sequence(self)
        self.assertEqual(await sequence.add(1, start=True), 1)
        self.assertEqual(await sequence.add(5, start=True), 5)
        self.assertEqual(await sequence.add(6, end=True), 11)
        self.assertEqual(await sequence.add(7, start=True, end=True), 7)

    async def test_requests_outside_of_a_sequence_are_refused(self):
        for kind in [int, str]:
            sequence = Sequence(self, kind)
            self.assertIn(not_started(sequence), await self.failure("invalid", sequence.add(1)))
            await sequence.add(1, start=True, end=True)
            self.assertIn(not_started(sequence), await self.failure("invalid", sequence.add(1, end=True)))

    async def test_a_request_without_an_id_is_refused(self):
        for name in [0, ""]:
            sequence = Sequence(self)
            sequence.id = name
            self.assertIn(
                "inference request to model 'sums' must specify a non-zero or non-empty correlation ID",
                await self.failure("invalid", sequence.add(1, start=True)),
            )

    async def test_a_request_has_one_row(self):
        sequence = Sequence(self)
        request = sequence.request(1, start=True)
        rows = request | {"inputs": [self.input("VALUE", np.array([[1], [2]], np.int32))]}
        self.assertIn(
            "inference request to model 'sums' must specify batch-size 1 due to requirements of sequence batcher",
            await self.failure("invalid", self.call("infer", **rows)),
        )

    async def test_a_failed_request_leaves_the_sum(self):
        sequence = Sequence(self)
        await sequence.add(1, start=True)
        self.assertIn("-2 is negative", await self.failure("invalid", sequence.add(-2)))
        self.assertEqual(await sequence.add(3, end=True), 4)

    async def test_sequences_at_the_same_time(self):
        if not asyncio.iscoroutinefunction(self.client.infer):
            return

        async def sums(sequence):
            return [
                await sequence.add(value, start=value == 1, end=value == 20) for value in range(1, 21)
            ]

        expected = list(itertools.accumulate(range(1, 21)))
        answers = await asyncio.gather(*[sums(Sequence(self)) for _ in range(20)])
        self.assertEqual(answers, [expected] * 20)


@grpc_clients
class StreamsOfSequences(Streams):
    async def test_a_stream_may_have_several_sequences_in_order(self):
        one, other = Sequence(self), Sequence(self, str)
        requests = [
            one.request(1, start=True),
            other.request(10, start=True),
            one.request(2),
            other.request(20, end=True),
            one.request(3, end=True),
        ]
        self.assertEqual(self.outputs(await self.conversation(requests)), [1, 10, 3, 30, 6])

    async def test_a_sequence_goes_on_on_another_stream_and_by_calls(self):
        sequence = Sequence(self)
        self.assertEqual(self.outputs(await self.conversation([sequence.request(1, start=True)])), [1])
        self.assertEqual(await sequence.add(2), 3)
        self.assertEqual(self.outputs(await self.conversation([sequence.request(3, end=True)])), [6])

    async def test_failures_are_in_their_place_and_the_stream_goes_on(self):
        sequence, unknown = Sequence(self), Sequence(self)
        requests = [
            sequence.request(1, start=True),
            unknown.request(1),
            sequence.request(-1),
            sequence.request(2, end=True),
            sequence.request(3),
        ]
        first, lost, failed, last, ended = self.outputs(await self.conversation(requests))
        self.assertEqual([first, last], [1, 3])
        self.assertIn(not_started(unknown), lost)
        self.assertIn("-1 is negative", failed)
        self.assertIn(not_started(sequence), ended)

    async def test_many_sequences_on_one_stream(self):
        sequences = [Sequence(self) for _ in range(50)]
        requests = [
            sequence.request(value, start=value == 1, end=value == 5) for value in range(1, 6) for sequence in sequences
        ]
        expected = [total for total in itertools.accumulate(range(1, 6)) for _ in sequences]
        self.assertEqual(self.outputs(await self.conversation(requests)), expected)
