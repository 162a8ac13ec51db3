"""Responses wait for their readers: a request sends no more than the server gives credit for."""

import textwrap
import unittest

import numpy as np
from fake_server import CANCEL, CREDIT, DUMP_STACKS, RESPONSE, RETURNED, STACKS, STOP, STOPPED, FakeServer

HEAD = """
import asyncio
import threading
import numpy as np
import triton_python_backend_utils as pb
def response(value):
    return pb.InferenceResponse([pb.Tensor('OUT', np.array([value]))])
def send_all(request, count=100):
    sender = request.get_response_sender()
    for i in range(count):
        sender.send(response(i))
    sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
class TritonPythonModel:
"""

FORMS = {
    "execute": "def execute(self, requests):\n    for request in requests:\n        send_all(request)\n",
    "thread": """
def execute(self, requests):
    for request in requests:
        threading.Thread(target=send_all, args=(request,), daemon=True).start()
""",
    "event loop": "async def execute(self, requests):\n    for request in requests:\n        send_all(request)\n",
    "thread of the event loop": """
async def execute(self, requests):
    await asyncio.gather(*(asyncio.to_thread(send_all, request) for request in requests))
""",
}

GENERATORS = {
    "generator": "def infer(n):\n    for i in range(int(n)):\n        yield i\n",
    "asynchronous generator": "async def infer(n):\n    for i in range(int(n)):\n        yield i\n",
}


def field(name):
    return {"name": name, "datatype": "INT64", "dims": [], "optional": False, "encoding": None}


def serve(form, credit=16, **settings):
    """A server of one of both, and what begins a request of 100 responses."""
    if form in FORMS:
        code = HEAD + textwrap.indent(textwrap.dedent(FORMS[form]), "    ")
        server = FakeServer(code, decoupled=True, credit=credit, **settings)
        return server, lambda: server.send_execute({"inputs": {"IN": np.array([1])}})
    server = FakeServer(
        GENERATORS[form],
        mode="function",
        function="infer",
        signature={"inputs": [field("n")], "outputs": [field("y")], "max_batch_size": 0},
        credit=credit,
        **settings,
    )
    return server, lambda: server.send_function(n=np.array(100))


class Reader:
    """Reads the responses of one request."""

    def __init__(self, server, number):
        self.server = server
        self.number = number
        self.ended = False
        self.has_returned = False

    def read(self, count):
        """Reads as many responses; fewer if the request ends."""
        for got in range(count):
            while True:
                kind, header = self.server.answer()
                assert header["x"] == self.number, header
                if kind == RETURNED:
                    self.has_returned = True
                else:
                    break
            if header["final"]:
                self.ended = True
                return got
        return count

    def give(self, count):
        self.server.tell(CREDIT, {"x": self.number, "q": 0, "n": count})

    def waits(self):
        """Whether a thread of the model waits for credit, or its asynchronous generator does; polls the stacks."""
        for number in range(2000):
            self.server.tell(DUMP_STACKS, {"n": number})
            if "credit.py" in self.server.wait(STACKS)[0]["text"]:
                return True
        return False

    def has_nothing(self):
        """Whether nothing more has come, or comes, until the process answers another question."""
        self.server.tell(DUMP_STACKS, {"n": 0})
        self.server.wait(STACKS)
        self.server.data.setblocking(False)
        try:
            return self.server.data.recv(1) is None
        except BlockingIOError:
            return True
        finally:
            self.server.data.settimeout(20)


class Credit(unittest.TestCase):
    def test_no_form_sends_more_than_it_has_credit_for(self):
        for form in (*FORMS, *GENERATORS):
            with self.subTest(form):
                server, begin = serve(form)
                with server:
                    reader = Reader(server, begin())
                    self.assertEqual(reader.read(16), 16)
                    if form != "asynchronous generator":
                        self.assertTrue(reader.waits())
                    elif not reader.has_returned:
                        self.assertEqual(server.answer()[0], RETURNED)
                    self.assertTrue(form in ("execute", "generator") or reader.has_returned or server.answer()[0] == RETURNED)
                    self.assertTrue(reader.has_nothing())
                    reader.give(8)
                    self.assertEqual(reader.read(8), 8)
                    self.assertTrue(reader.has_nothing())
                    reader.give(1000)
                    self.assertEqual(reader.read(1000), 76)
                    server.stop()

    def test_a_cancellation_ends_the_wait(self):
        for form in (*FORMS, *GENERATORS):
            with self.subTest(form):
                server, begin = serve(form)
                with server:
                    reader = Reader(server, begin())
                    reader.read(16)
                    server.tell(CANCEL, {"x": reader.number, "q": 0})
                    # A model that ignores it sends the others at once, as one without credit.
                    self.assertEqual(reader.read(1000), 84 if form in FORMS else 0)
                    self.assertTrue(reader.ended)
                    server.stop()

    def test_a_stop_ends_the_wait(self):
        for form in (*FORMS, *GENERATORS):
            with self.subTest(form):
                server, begin = serve(form)
                with server:
                    reader = Reader(server, begin())
                    reader.read(16)
                    server.tell(STOP, {})
                    server.wait(STOPPED)
                    self.assertEqual(server.process.wait(20), 0)

    def test_the_end_of_the_server_ends_a_process_that_waits(self):
        for form in (*FORMS, *GENERATORS):
            with self.subTest(form):
                server, begin = serve(form)
                with server:
                    Reader(server, begin()).read(16)
                    server.control.close()
                    self.assertEqual(server.process.wait(20), 1)

    def test_a_request_that_was_cancelled_before_it_came_does_not_wait(self):
        server, begin = serve("execute")
        with server:
            server.tell(CANCEL, {"x": 1, "q": 0})
            server.tell(DUMP_STACKS, {"n": 1})
            server.wait(STACKS)
            self.assertEqual(Reader(server, begin()).read(1000), 100)

    def test_credit_for_requests_that_are_over_or_unknown_is_ignored(self):
        server, begin = serve("execute", credit=200)
        with server:
            reader = Reader(server, begin())
            self.assertEqual(reader.read(1000), 100)
            reader.give(8)
            server.tell(CREDIT, {"x": 77, "q": 3, "n": 8})
            self.assertEqual(server.answer()[0], RETURNED)
            self.assertEqual(Reader(server, begin()).read(1000), 100)
            server.stop()

    def test_an_exception_of_execute_ends_the_wait_of_its_threads(self):
        code = HEAD + textwrap.indent(
            textwrap.dedent(
                """
                def execute(self, requests):
                    if hasattr(self, "thread"):
                        self.thread.join()
                        return requests[0].get_response_sender().send(response(self.error), 1)
                    def send():
                        try:
                            send_all(requests[0])
                        except pb.TritonModelException as error:
                            self.error = int("has been closed" in str(error))
                    self.thread = threading.Thread(target=send)
                    self.thread.start()
                    while requests[0].get_response_sender()._state.sent < 16:
                        pass
                    raise ValueError("over")
                """
            ),
            "    ",
        )
        with FakeServer(code, decoupled=True, credit=16) as server:
            server.send_execute({"inputs": {"IN": np.array([1])}})
            while server.answer()[0] != RETURNED:
                pass
            server.send_execute({"inputs": {"IN": np.array([1])}})
            self.assertEqual(int(server.answer()[1]["outputs"]["OUT"][0]), 1)
            server.stop()

    def test_a_response_that_cannot_be_sent_costs_nothing(self):
        form = """
        def execute(self, requests):
            sender = requests[0].get_response_sender()
            wrong = pb.InferenceResponse([pb.Tensor('OUT', np.array(['\\ud800'], dtype=object))])
            for _ in range(50):
                try:
                    sender.send(wrong)
                except pb.TritonModelException:
                    pass
            sender.send(response(1), 1)
        """
        code = HEAD + textwrap.indent(textwrap.dedent(form), "    ")
        with FakeServer(code, decoupled=True, credit=2) as server:
            server.send_execute({"inputs": {"IN": np.array([1])}})
            answer = server.answer()[1]
            self.assertEqual(answer.get("final"), 1, answer)
            server.stop()

    def test_several_requests_have_each_their_credit(self):
        server, _ = serve("thread of the event loop")
        with server:
            number = server.send_execute({"inputs": {"IN": np.array([1])}}, {"inputs": {"IN": np.array([1])}})
            came = [header["q"] for kind, header in (server.answer() for _ in range(33)) if kind == RESPONSE]
            self.assertEqual((came.count(0), came.count(1)), (16, 16))
            server.tell(CREDIT, {"x": number, "q": 1, "n": 1})
            self.assertEqual(server.answer()[1]["q"], 1)


class Threads(unittest.TestCase):
    def test_credit_is_for_the_instance_that_it_names(self):
        server, begin = serve("execute", threads=[{"model_instance_name": "m_0_1"}])
        with server:
            numbers = []
            for thread in (0, 1):
                server.use_thread(thread)
                numbers.append(begin())
                self.assertEqual(Reader(server, numbers[-1]).read(16), 16)
            server.tell(CREDIT, {"x": numbers[1], "q": 0, "t": 1, "n": 100})
            self.assertEqual(Reader(server, numbers[1]).read(1000), 84)
            server.tell(CANCEL, {"x": numbers[0], "q": 0, "t": 0})
            server.use_thread(0)
            self.assertEqual(Reader(server, numbers[0]).read(1000), 84)
            server.stop()


class Sleeping(unittest.TestCase):
    def test_other_streams_of_an_asynchronous_generator_go_on(self):
        server, begin = serve("asynchronous generator")
        with server:
            first = begin()
            for _ in range(17):
                server.answer()
            second = begin()
            answers = [server.answer() for _ in range(17)]
            self.assertEqual({header["x"] for _, header in answers}, {second})
            server.tell(CREDIT, {"x": first, "q": 0, "n": 1})
            self.assertEqual(server.answer()[1]["x"], first)


if __name__ == "__main__":
    unittest.main()
