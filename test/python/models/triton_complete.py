"""Declares itself in auto_complete_config, unless its name says otherwise."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        config = auto_complete_model_config.as_dict()
        name = config["name"]
        assert isinstance(config["input"], list) and isinstance(config["max_batch_size"], int)
        if name == "complete_error":
            undefined_variable  # noqa: B018
        if name == "complete_nothing":
            return None
        auto_complete_model_config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
        auto_complete_model_config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        if name == "complete_wrong":
            auto_complete_model_config.add_input({"name": "OTHER", "data_type": "TYPE_FP32", "dims": [0]})
        auto_complete_model_config.set_max_batch_size(4)
        auto_complete_model_config.set_dynamic_batching()
        return auto_complete_model_config

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() * 2)]
            )
            for request in requests
        ]
