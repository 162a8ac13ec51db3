"""Triton's class, as a model of the tests: the text of a request says how to answer it."""

import json
import os
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


def text_of(request):
    return pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)[0].decode()


def answer(text, parameters=None):
    tensor = pb_utils.Tensor("ANSWER", np.array([[text.encode()]], dtype=np.object_))
    if parameters is None:
        return pb_utils.InferenceResponse([tensor])
    return pb_utils.InferenceResponse([tensor], parameters=parameters)


codes = {
    name: getattr(pb_utils.TritonError, name)
    for name in "UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED".split()
}


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.config = json.loads(args["model_config"])
        if self.parameter("fail") is not None:
            raise ValueError(self.parameter("fail"))
        if self.parameter("import") is not None:
            __import__(self.parameter("import"))
        if self.parameter("kill") is not None:
            os.kill(os.getpid(), 9)
        if self.parameter("hang") is not None:
            print("loading in", os.getpid())
            threading.Event().wait()

    def parameter(self, name):
        return self.config["parameters"].get(name, {}).get("string_value")

    def execute(self, requests):
        return [self.respond(request, len(requests)) for request in requests]

    def respond(self, request, size):
        command, _, rest = text_of(request).partition(" ")
        if command == "echo":
            return answer(rest)
        if command == "args":
            return answer(",".join(f"{key}={value}" for key, value in sorted(self.args.items()) if key != "model_config"))
        if command == "size":
            return answer(str(size))
        if command == "error":
            code, _, message = rest.partition(" ")
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, codes[code]))
        if command == "raise":
            raise KeyError(rest)
        if command == "request":
            seen = [
                request.request_id(),
                request.correlation_id(),
                request.flags(),
                request.timeout(),
                json.loads(request.parameters()),
                sorted(request.requested_output_names()),
            ]
            return answer(json.dumps(seen), {"seen": 7, "name": "n", "is": True})
        if command == "late":
            sender = request.get_response_sender()
            # Answered by another thread, after the end of this execution.
            threading.Thread(target=self.answer_late, args=(sender, rest), daemon=True).start()
            return None
        if command == "never":
            return None
        if command == "exit":
            os._exit(3)
        if command == "log":
            pb_utils.Logger.log_warn(rest)
            return answer("logged")
        raise ValueError(f"unknown command {command}")

    def answer_late(self, sender, text):
        sender.send(answer(text), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def finalize(self):
        print("finalized", self.args["model_instance_name"])
