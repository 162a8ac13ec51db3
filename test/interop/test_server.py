"""What a client asks before it infers: health, metadata, configuration, statistics."""

import numpy as np
from cases import Case, every_client


@every_client
class Health(Case):
    async def test_live_and_ready(self):
        self.assertIs(await self.call("is_server_live"), True)
        self.assertIs(await self.call("is_server_ready"), True)

    async def test_a_model_is_ready_in_the_version_there_is(self):
        self.assertIs(await self.call("is_model_ready", "simple"), True)
        self.assertIs(await self.call("is_model_ready", "simple", "1"), True)

    async def test_a_model_that_is_not_there(self):
        self.assertIs(await self.call("is_model_ready", "absent"), False)
        self.assertIs(await self.call("is_model_ready", "simple", "2"), False)


@every_client
class Metadata(Case):
    async def test_server(self):
        metadata = await self.message("get_server_metadata")
        self.assertEqual(metadata["name"], "nereid")
        self.assertRegex(metadata["version"], r"^\d+\.\d+\.\d+")
        self.assertIn("binary_tensor_data", metadata["extensions"])

    async def test_model(self):
        metadata = await self.message("get_model_metadata", "simple")
        shape = [-1, 16] if self.protocol == "http" else ["-1", "16"]
        self.assertEqual((metadata["name"], metadata["versions"]), ("simple", ["1"]))
        self.assertEqual(metadata["inputs"][0], {"name": "INPUT0", "datatype": "INT32", "shape": shape})
        self.assertEqual([output["name"] for output in metadata["outputs"]], ["OUTPUT0", "OUTPUT1"])

    async def test_declared_contract(self):
        metadata = await self.message("get_model_metadata", "scores")
        self.assertEqual([tensor["name"] for tensor in metadata["outputs"]], ["SCORE", "CLASS"])
        if self.protocol == "http":
            self.assertIn({"name": "CLASS", "labels": ["cat", "dog"]}, metadata["contract"]["outputs"])
        else:
            self.assertEqual(set(metadata), {"name", "versions", "platform", "inputs", "outputs"})

    async def test_onnx_model(self):
        self.assertEqual((await self.message("get_model_metadata", "digits", "1"))["platform"], "onnxruntime_onnx")

    async def test_configuration(self):
        config = await self.message("get_model_config", "simple")
        if self.protocol == "grpc":
            config = config["config"]
        self.assertEqual((config["name"], config["max_batch_size"]), ("simple", 8))
        self.assertEqual(config["input"][0]["data_type"], "TYPE_INT32")
        self.assertEqual([int(extent) for extent in config["input"][0]["dims"]], [16])

    async def test_what_is_not_there(self):
        for method in ["get_model_metadata", "get_model_config"]:
            text = await self.failure("not found", self.call(method, "absent"))
            self.assertIn("Request for unknown model: 'absent' is not found", text)
            text = await self.failure("not found", self.call(method, "simple", "99"))
            self.assertIn("Request for unknown model: 'simple' version 99 is not found", text)


@every_client
class Statistics(Case):
    async def counted(self, model):
        [statistics] = (await self.message("get_inference_statistics", model))["model_stats"]
        success = statistics["inference_stats"]["success"]
        return [
            int(number)
            for number in (
                statistics.get("inference_count", 0),
                statistics.get("execution_count", 0),
                success.get("count", 0),
            )
        ]

    async def test_inference_count_counts_rows(self):
        rows, executions, requests = await self.counted("simple")
        tensor = np.zeros((3, 16), np.int32)
        await self.infer("simple", [self.input("INPUT0", tensor), self.input("INPUT1", tensor)])
        self.assertEqual(await self.counted("simple"), [rows + 3, executions + 1, requests + 1])

    async def test_of_all_models(self):
        statistics = (await self.message("get_inference_statistics"))["model_stats"]
        self.assertLessEqual({"simple", "digits"}, {model["name"] for model in statistics})

    async def test_of_a_model_that_is_not_there(self):
        text = await self.failure("invalid", self.call("get_inference_statistics", "absent"))
        self.assertIn("requested model 'absent' is not available", text)
