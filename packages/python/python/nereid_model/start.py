"""Settings of a model's process, from the server's first frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from .frames import ProtocolError


@dataclass(frozen=True)
class Field:
    """One declared input or output."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False
    # "utf8" for text, "bytes" for other BYTES, None for the rest.
    encoding: Optional[str] = None


@dataclass(frozen=True)
class Start:
    """Settings of a model's process; the field names are those of the frame."""

    mode: str
    file: str = ""
    module: str = ""
    function: str = ""
    data: str = ""
    args: dict[str, str] = field(default_factory=dict)
    version_dir: str = ""
    model_dir: str = ""
    decoupled: bool = False
    inputs: tuple[Field, ...] = ()
    outputs: tuple[Field, ...] = ()
    max_batch_size: int = 0
    # Levels that the server logs: `verbose`, `info`, `warning` and `error`.
    log: dict[str, Any] = field(default_factory=dict)
    concurrency: int = 1
    # Responses of a request that may be ahead of their reader; 0 for any number.
    credit: int = 0
    # Arguments of the further instances, each in another thread of the process.
    threads: tuple[dict[str, str], ...] = ()
    bls_threads: int = 32
    memory_limit: int = 0
    death_signal: bool = True

    @property
    def instance_name(self) -> str:
        return self.args.get("model_instance_name") or self.args.get("model_name", "")


def parse_start(header: dict[str, Any]) -> Start:
    """Reads a START header; raises ProtocolError for a wrong one."""
    try:
        mode = header["mode"]
        if mode not in ("triton", "function", "autocomplete"):
            raise ProtocolError(f"unknown mode {mode!r} in START")
        signature = header.get("signature") or {}
        limits = header.get("limits") or {}
        return Start(
            mode=mode,
            file=header.get("file") or "",
            module=header.get("module") or "",
            function=header.get("function") or "",
            data=header.get("data") or "",
            args=_parse_args(header.get("args") or {}),
            version_dir=header.get("version_dir") or "",
            model_dir=header.get("model_dir") or "",
            decoupled=bool(header.get("decoupled")),
            inputs=tuple(map(_parse_field, signature.get("inputs") or ())),
            outputs=tuple(map(_parse_field, signature.get("outputs") or ())),
            max_batch_size=int(signature.get("max_batch_size") or 0),
            log=dict(header.get("log") or {}),
            concurrency=max(1, int(header.get("concurrency") or 1)),
            credit=max(0, int(header.get("credit") or 0)),
            threads=tuple(map(_parse_args, header.get("threads") or ())),
            bls_threads=max(1, int(header.get("bls_threads") or 32)),
            memory_limit=int(limits.get("memory") or 0),
            death_signal=bool(header.get("death_signal", True)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"START is wrong: {type(error).__name__}: {error}") from None


def _parse_args(args: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in args.items()}


def _parse_field(item: dict[str, Any]) -> Field:
    return Field(
        name=item["name"],
        datatype=item["datatype"],
        dims=tuple(int(size) for size in item.get("dims") or ()),
        optional=bool(item.get("optional")),
        encoding=item.get("encoding"),
    )
