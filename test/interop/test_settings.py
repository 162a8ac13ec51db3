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
        kind = "unavailable" if self.protocol == "http" else "invalid"
        await self.failure(kind, self.update({"log_format": "none"}))
        self.assertEqual((await self.get())["log_format"], "default")
