"""Doubles FP32 and negates BF16 with torch. Its tensors are read and written by DLPack, without copies."""

import torch
import torch.utils.dlpack
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            numbers = pb_utils.get_input_tensor_by_name(request, "NUMBERS")
            # By the protocol's methods, and by a capsule: both are the memory of the input.
            first, second = torch.from_dlpack(numbers), torch.utils.dlpack.from_dlpack(numbers.to_dlpack())
            assert first.data_ptr() == second.data_ptr() == numbers.as_numpy().ctypes.data
            first *= 2
            assert second.tolist() == first.tolist()
            short = torch.from_dlpack(pb_utils.get_input_tensor_by_name(request, "SHORT"))
            assert short.dtype == torch.bfloat16, short.dtype
            doubled = pb_utils.Tensor.from_dlpack("DOUBLED", first)
            assert doubled.as_numpy().ctypes.data == first.data_ptr()
            negated = pb_utils.Tensor.from_dlpack("NEGATED", torch.utils.dlpack.to_dlpack(-short))
            sums = pb_utils.Tensor.from_dlpack("SUM", first.sum(dim=0, dtype=torch.int64))
            responses.append(pb_utils.InferenceResponse([doubled, negated, sums]))
        return responses
