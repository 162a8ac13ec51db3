"""Fails, logs and prints where its parameters say so."""

import json
import os
import signal

import numpy as np
import triton_python_backend_utils as pb_utils


def log_all(step):
    logger = pb_utils.Logger
    logger.log(f"{step}-Specific Msg!", logger.INFO)
    logger.log_info(f"{step}-Info Msg!")
    logger.log_warn(f"{step}-Warning Msg!")
    logger.log_error(f"{step}-Error Msg!")
    logger.log_verbose(f"{step}-Verbose Msg!")


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]
        if self.name == "init_error":
            lorem_ipsum  # noqa: B018
        if self.name == "init_exit":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.name == "init_import":
            import no_such_package  # noqa: F401
        self.batch = 0
        log_all("Initialize")

    def execute(self, requests):
        log_all("Execute")
        if self.name == "wrong_model":
            return [undefined_name for _ in requests]  # noqa: F821
        if self.name == "not_a_list":
            return "nothing"
        if self.name == "too_few":
            return []
        responses = []
        for index, request in enumerate(requests):
            if self.name == "execute_error" and index != 1:
                error = pb_utils.TritonError("An error occurred during execution")
                responses.append(pb_utils.InferenceResponse([], error))
                continue
            tensor = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", tensor)]))
        return responses

    def finalize(self):
        log_all("Finalize")
        if self.name == "fini_error":
            undefined_variable  # noqa: B018
