"""Decoupled: "FORM COUNT SIZE" says how to send, and how many texts of which length. Prints where it waits for readers."""

import asyncio
import os
import sys
import threading
import time

import numpy as np
import triton_python_backend_utils as pb


class Sending:
    """The responses of one request."""

    def __init__(self, request):
        self.form, count, *size = pb.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)[0].decode().split()
        self.count = int(count)
        self.size = int(size[0]) if size else 1
        self.sender = request.get_response_sender()
        self.sent = 0
        self.ended = False

    def run(self):
        watcher = threading.Thread(target=self.watch, args=(threading.get_ident(),), daemon=True)
        watcher.start()
        for number in range(self.count):
            text = np.array([[str(number).rjust(self.size)]], dtype=np.object_)
            self.sender.send(pb.InferenceResponse([pb.Tensor("ANSWER", text)]))
            self.sent += 1
        self.sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        self.ended = True
        watcher.join()
        print(f"{self.form} ended after {self.sent}", flush=True)

    def watch(self, thread):
        """Prints each wait of some length: short ones are for credit that is on its way."""
        printed = sent = 0
        since = time.monotonic()
        while not self.ended:
            if sent != self.sent or not waits(sys._current_frames().get(thread)):
                sent = self.sent
                since = time.monotonic()
            elif sent > printed and time.monotonic() - since > 0.2:
                printed = sent
                print(f"{self.form} waits after {sent}", flush=True)
            time.sleep(0.001)


def waits(frame):
    """Whether a thread waits for a reader."""
    return (
        frame is not None
        and frame.f_code.co_filename.endswith("threading.py")
        and frame.f_back.f_code.co_filename.endswith("credit.py")
    )


class TritonPythonModel:
    def initialize(self, args):
        print(f"process {os.getpid()}", flush=True)

    def execute(self, requests):
        sending = [Sending(request) for request in requests]
        form = sending[0].form
        while form == "hang":
            time.sleep(0.01)
        if form == "loop":
            return self.in_loop(sending)
        if form == "tasks":
            return self.in_tasks(sending)
        for each in sending:
            if form == "thread":
                threading.Thread(target=each.run).start()
            else:
                each.run()

    async def in_loop(self, sending):
        for each in sending:
            each.run()

    async def in_tasks(self, sending):
        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(None, each.run) for each in sending))
