"""The generate extension as scripts use it: one flat JSON object in, and one or a stream of them out."""

import json
import unittest
import urllib.error

from cases import post


def ask(model, document, route="generate"):
    return post(f"/v2/models/{model}/{route}", json.dumps(document).encode(), {"Content-Type": "application/json"})


def events(response):
    """The documents of a stream of server-sent events."""
    *blocks, rest = response.read().decode().split("\n\n")
    assert rest == "", rest
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


class Generate(unittest.TestCase):
    def assert_refused(self, status, text, model, document, route="generate"):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            ask(model, document, route)
        with raised.exception as response:
            self.assertEqual(response.code, status)
            self.assertIn(text, json.load(response)["error"])

    def test_text_in_and_out(self):
        with ask("optional", {"id": "7", "TEXT": "größer"}) as response:
            self.assertEqual(response.headers["Content-Type"], "application/json")
            expected = {"id": "7", "model_name": "optional", "model_version": "1", "TEXT": "größer"}
            self.assertEqual(json.load(response), expected)

    def test_arrays(self):
        with ask("simple", {"INPUT0": list(range(16)), "INPUT1": [1] * 16}) as response:
            self.assertEqual(json.load(response)["OUTPUT0"], list(range(1, 17)))

    def test_parameters(self):
        with ask("repeating", {"X": 5, "key": "value", "parameters": {"temperature": 0.5}}) as response:
            answer = json.load(response)
            self.assertEqual((answer["X"], answer["key"], answer["temperature"]), (5, "value", 0.5))

    def test_one_response_of_a_decoupled_model(self):
        with ask("counting", {"IN": [3]}) as response:
            self.assertEqual(json.load(response)["OUT"], 3)

    def test_what_is_refused(self):
        self.assert_refused(404, "Request for unknown model: 'absent' is not found", "absent", {"TEXT": ""})
        self.assert_refused(400, "expected 2 inputs but got 1 inputs", "simple", {"INPUT0": [0] * 16})
        self.assert_refused(500, "too bad", "failing", {"TEXT": "too bad"})

    def test_more_or_less_than_one_response(self):
        for numbers in [[], [1, 2]]:
            with self.assertRaises(urllib.error.HTTPError) as raised:
                ask("counting", {"IN": numbers})
            with raised.exception as response:
                self.assertIn("generate expects model to produce exactly 1 response", json.load(response)["error"])


class GenerateStream(unittest.TestCase):
    def stream(self, model, document):
        with ask(model, document, "generate_stream") as response:
            self.assertEqual(response.headers["Content-Type"], "text/event-stream; charset=utf-8")
            return events(response)

    def test_every_response_is_an_event(self):
        answers = self.stream("counting", {"id": "7", "IN": [5, 6, 7]})
        self.assertEqual([(answer["id"], answer["OUT"]) for answer in answers], [("7", 5), ("7", 6), ("7", 7)])

    def test_of_a_model_that_answers_once(self):
        [answer] = self.stream("optional", {"TEXT": "a", "SUFFIX": "b"})
        self.assertEqual(answer["TEXT"], "ab")

    def test_no_response(self):
        self.assertEqual(self.stream("counting", {"IN": []}), [])

    def test_a_failure_after_the_first_response(self):
        first, failure = self.stream("counting", {"IN": [1, -2, 3]})
        self.assertEqual(first["OUT"], 1)
        self.assertIn("-2 is negative", failure["error"])

    def test_a_failure_before_the_first_response(self):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            ask("absent", {"IN": [1]}, "generate_stream")
        with raised.exception as response:
            self.assertEqual((response.code, response.headers["Content-Type"]), (404, "application/json"))
