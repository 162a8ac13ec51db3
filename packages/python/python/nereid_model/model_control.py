"""Loading and unloading of the server's models by a model."""

from __future__ import annotations

from typing import Any, Optional

from .errors import TritonModelException, expect, expect_text
from .frames import ALIGNMENT, PADDING
from .host import Phase, current_host

_FILE_PREFIX = "file:"


def load_model(model_name: str, config: str = "", files: Optional[dict[str, bytes]] = None) -> None:
    """Loads a model, with another configuration or other files if given; waits until it is ready."""
    expect_text("model_name", model_name)
    expect_text("config", config)
    header: dict[str, Any] = {"do": "load", "model": model_name}
    if config:
        header["config"] = config
    entries: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    length = 0
    for path, content in expect("files", files or {}, dict).items():
        expect_text("a file's path", path)
        expect("a file's content", content, bytes)
        name = path[len(_FILE_PREFIX) :] if path.startswith(_FILE_PREFIX) else path
        entries.append({"path": name, "b": len(content)})
        if content:
            padding = -length % ALIGNMENT
            pieces += [PADDING[padding], content]
            length += padding + len(content)
    if entries:
        header["files"] = entries
    _ask(header, "Failed to load model: ", pieces, length)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Starts to unload a model; returns before it is unloaded."""
    expect_text("model_name", model_name)
    expect("unload_dependents", unload_dependents, bool)
    header = {"do": "unload", "model": model_name, "dependents": unload_dependents}
    _ask(header, "Failed to unload model: ")


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model, or one version of it, can take requests; raises for an unknown model."""
    expect_text("model_name", model_name)
    expect_text("model_version", model_version)
    header = {"do": "ready", "model": model_name, "version": model_version}
    return bool(_ask(header, "Failed to check model readiness: "))


def get_model_dir() -> str:
    """Folder of the model's version."""
    return current_host().model_directory


def _ask(header: dict[str, Any], prefix: str, pieces: Any = (), length: int = 0) -> Any:
    host = current_host()
    try:
        if host.phase in (Phase.AUTO_COMPLETE, Phase.FINALIZE):
            raise TritonModelException(f"The models of the server cannot be controlled in '{host.phase.value}'.")
        return host.control_model(header, pieces, length)
    except TritonModelException as error:
        text = str(error)
        raise TritonModelException(text if text.startswith(prefix) else prefix + text) from None
