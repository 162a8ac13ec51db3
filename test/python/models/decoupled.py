"""A decoupled model: the text of a request says how many responses to send, and when."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils

released = threading.Event()


def response(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([[text.encode()]], dtype=np.object_))])


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "TEXT", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "ANSWER", "data_type": "TYPE_STRING", "dims": [1]})
        config.set_model_transaction_policy({"decoupled": True})
        return config

    def execute(self, requests):
        for request in requests:
            command, _, rest = self.text_of(request).partition(" ")
            sender = request.get_response_sender()
            final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
            if command == "now":
                for number in range(int(rest)):
                    sender.send(response(f"{number} of {len(requests)}"))
                sender.send(flags=final)
            elif command == "late":
                threading.Thread(target=self.send_late, args=(sender, rest), daemon=True).start()
            elif command == "release":
                released.set()
                sender.send(response("released"), flags=final)
            elif command == "cancelled":
                threading.Thread(target=self.await_cancellation, args=(sender,), daemon=True).start()
            elif command == "error":
                sender.send(response("first"))
                error = pb_utils.TritonError("not the second", pb_utils.TritonError.NOT_FOUND)
                sender.send(pb_utils.InferenceResponse(error=error), flags=final)
            else:
                raise ValueError(f"unknown command {command}")

    def text_of(self, request):
        return pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)[0].decode()

    def send_late(self, sender, text):
        released.wait()
        sender.send(response(text))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def await_cancellation(self, sender):
        waiting = threading.Event()
        sender.send(response("begun"))
        while not sender.is_cancelled():
            waiting.wait(0.001)
        print("saw the cancellation", flush=True)
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
