"""Imports a file beside it, absolutely and relatively."""

import file1
import numpy as np
import triton_python_backend_utils as pb

from . import file1 as relative


class TritonPythonModel:
    def execute(self, requests):
        out = pb.Tensor("OUT", np.array([file1.VALUE + relative.VALUE], dtype=np.int32))
        return [pb.InferenceResponse([out]) for _ in requests]
