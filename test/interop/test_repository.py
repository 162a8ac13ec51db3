"""The repository of a server whose models are there from its start to its end: an index, and nothing to load or unload."""

from cases import Case, every_client


@every_client
class Repository(Case):
    async def test_the_index(self):
        index = await self.message("get_model_repository_index")
        models = {model["name"]: model for model in (index if self.protocol == "http" else index["models"])}
        self.assertLessEqual({"simple", "digits", "counting"}, set(models))
        self.assertEqual((models["simple"]["version"], models["simple"]["state"]), ("1", "READY"))

    async def test_nothing_is_loaded_or_unloaded(self):
        refusal = "explicit model load / unload is not allowed if polling is enabled"
        calls = [
            self.call("load_model", "simple"),
            self.call("load_model", "absent", config="{}", files={"file:1/model.onnx": b"\0"}),
            self.call("unload_model", "simple"),
            self.call("unload_model", "simple", unload_dependents=True),
        ]
        for call in calls:
            self.assertIn(refusal, await self.failure("unavailable", call))
        self.assertIs(await self.call("is_model_ready", "simple"), True)
