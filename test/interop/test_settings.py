"""What is logged and traced, as clients read it and change it while the server runs."""

from cases import Case, every_client


class Settings(Case):
    # The settings that the tests change, each as it was.
    defaults: dict

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.addAsyncCleanup(self.update, self.defaults)


@every_client
class Logging(Settings):
    defaults = {"log_info": True, "log_warning": True, "log_verbose_level": 0, "log_format": "default"}

    async def update(self, settings):
        return self.values(await self.message("update_log_settings", settings))

    async def get(self):
        return self.values(await self.message("get_log_settings"))

    def values(self, answer):
        """The settings alike, whatever the protocol."""
        if self.protocol == "http":
            return answer
        return {name: next(iter(setting.values())) for name, setting in answer["settings"].items()}

    async def test_all_settings(self):
        settings = {"log_file": "", "log_error": True} | self.defaults
        self.assertEqual(await self.get(), settings)

    async def test_changes(self):
        changes = {"log_info": False, "log_verbose_level": 2, "log_format": "ISO8601"}
        changed = await self.update(changes)
        self.assertLessEqual(changes.items(), changed.items())
        self.assertEqual(await self.get(), changed)

    async def test_the_file_does_not_change(self):
        text = await self.failure("unsupported", self.update({"log_file": "/tmp/a-file"}))
        self.assertIn("log file location can not be updated through network protocol", text)

    async def test_a_format_that_is_none(self):
        await self.failure("invalid", self.update({"log_format": "none"}))
        self.assertEqual((await self.get())["log_format"], "default")


@every_client
class Tracing(Settings):
    defaults = {"trace_level": None, "trace_rate": None, "trace_count": None, "log_frequency": None}

    async def update(self, settings, model=None):
        return self.values(await self.message("update_trace_settings", model_name=model, settings=settings))

    async def get(self, model=None):
        return self.values(await self.message("get_trace_settings", model_name=model))

    def values(self, answer):
        """Of each setting all its values, as texts."""
        if self.protocol == "http":
            return {name: value if isinstance(value, list) else [value] for name, value in answer.items()}
        return {name: setting.get("value", []) for name, setting in answer["settings"].items()}

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.addAsyncCleanup(self.update, self.defaults, "simple")

    async def test_off_unless_asked_for(self):
        settings = await self.get()
        self.assertEqual((settings["trace_level"], settings["trace_rate"]), (["OFF"], ["1000"]))
        self.assertEqual((settings["trace_count"], settings["log_frequency"]), (["-1"], ["0"]))

    async def test_settings_of_all_models(self):
        changed = await self.update({"trace_level": ["TIMESTAMPS"], "trace_rate": "5", "log_frequency": "2"})
        self.assertEqual((changed["trace_level"], changed["trace_rate"]), (["TIMESTAMPS"], ["5"]))
        self.assertEqual(await self.get("simple"), changed)
        cleared = await self.update({"trace_rate": None})
        self.assertEqual((cleared["trace_level"], cleared["trace_rate"]), (["TIMESTAMPS"], ["1000"]))

    async def test_settings_of_one_model(self):
        await self.update({"trace_rate": "7"})
        self.assertEqual((await self.update({"trace_rate": "9"}, "simple"))["trace_rate"], ["9"])
        self.assertEqual((await self.get())["trace_rate"], ["7"])
        self.assertEqual((await self.update({"trace_rate": None}, "simple"))["trace_rate"], ["7"])

    async def test_what_is_refused(self):
        text = await self.failure("unsupported", self.update({"trace_file": "/tmp/a-file"}))
        self.assertIn("trace file location can not be updated through network protocol", text)
        text = await self.failure("invalid", self.update({"trace_rate": "often"}))
        self.assertIn("Unable to parse 'trace_rate', got: often", text)
        text = await self.failure("invalid", self.update({"trace_level": ["EVERYTHING"]}))
        self.assertIn("trace_level", text)
        with self.assertRaises(Exception) as raised:
            await self.get("absent")
        self.assertIn("Request for unknown model : absent", str(raised.exception))
