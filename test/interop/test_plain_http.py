"""HTTP without any client of the protocol, as curl, load generators and scripts speak it."""

import http.client
import json
import unittest

import numpy as np
from cases import SERVERS, post

BODY = b"""{"id":"1","inputs":[
    {"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":[[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]]},
    {"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}
]}"""
PATH = "/v2/models/simple/infer"


class PlainHttp(unittest.TestCase):
    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", SERVERS["plain"]["http"], timeout=60)
        self.addCleanup(connection.close)
        return connection

    def assert_answered(self, response):
        answer = json.load(response)
        self.assertEqual(list(answer), ["id", "model_name", "model_version", "outputs"])
        self.assertEqual(answer["outputs"][0]["data"], list(range(1, 17)))

    def test_any_content_type(self):
        for content_type in [{}, {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}]:
            with self.subTest(content_type), post(PATH, BODY, content_type) as response:
                self.assertEqual(response.headers["Content-Type"], "application/json")
                self.assert_answered(response)

    def test_a_body_in_chunks(self):
        connection = self.connect()
        connection.request("POST", PATH, iter([BODY[:10], BODY[10:]]), encode_chunked=True)
        self.assert_answered(connection.getresponse())

    def test_a_body_that_waits_for_leave(self):
        connection = self.connect()
        connection.request("POST", PATH, BODY, {"Expect": "100-continue"})
        self.assert_answered(connection.getresponse())

    def test_many_requests_on_one_connection(self):
        connection = self.connect()
        for _ in range(50):
            connection.request("POST", PATH, BODY)
            self.assert_answered(connection.getresponse())

    def test_nothing_but_the_tensor(self):
        tensor = np.arange(256, dtype=np.uint8)
        headers = {"Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"}
        with post("/v2/models/large/infer", tensor.tobytes(), headers) as response:
            length = int(response.headers["Inference-Header-Content-Length"])
            self.assertEqual(response.read()[length:], tensor.tobytes())

    def test_metrics(self):
        with post(PATH, BODY):
            connection = http.client.HTTPConnection("127.0.0.1", SERVERS["plain"]["metrics"], timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        self.assertEqual(response.headers["Content-Type"], "text/plain; charset=utf-8")
        self.assertRegex(response.read().decode(), r'(?m)^nv_inference_count\{model="simple",version="1"\} \d+$')
