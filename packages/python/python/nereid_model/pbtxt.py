"""Reader of config.pbtxt, the text form of a model's configuration, for the local runner.

It knows the syntax and no schema: a field that occurs once is a value, one that repeats is a list. Fields that are
always lists in a model's configuration become lists.
"""

from __future__ import annotations

import re
from typing import Any, Iterator

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_][\w.]*)"""
    r"""|(?P<number>[-+]?[\d.][\w.+-]*)|(?P<mark>[{}\[\]<>:,;])"""
)
_LISTS = {"input", "output", "dims", "instance_group", "gpus", "shape", "preferred_batch_size", "label_filename"}
_MAPS = {"parameters", "metric_tags", "inputs", "cc_model_filenames"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


def parse_pbtxt(text: str) -> dict[str, Any]:
    """Reads a configuration; raises ValueError with the line of a mistake."""
    return _Reader(text).read_message("")


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def read_message(self, end: str) -> dict[str, Any]:
        fields: dict[str, list[Any]] = {}
        while True:
            kind, value, line = self._next()
            if kind == "end" or value == end:
                if (kind == "end") != (end == ""):
                    raise ValueError(f"line {line}: expected '{end}', found the end")
                return {name: _shape(name, values) for name, values in fields.items()}
            if value in (",", ";"):
                continue
            if kind != "word":
                raise ValueError(f"line {line}: expected the name of a field, found '{value}'")
            fields.setdefault(value, []).extend(self._read_field(line))

    def _read_field(self, line: int) -> list[Any]:
        kind, value, line = self._next()
        if value == ":":
            kind, value, line = self._next()
        if value == "[":
            return self._read_list()
        return [self._read_value(kind, value, line)]

    def _read_list(self) -> list[Any]:
        values: list[Any] = []
        while True:
            kind, value, line = self._next()
            if value == "]" and kind == "mark":
                return values
            if value == "," and kind == "mark":
                continue
            values.append(self._read_value(kind, value, line))

    def _read_value(self, kind: str, value: str, line: int) -> Any:
        if kind == "mark" and value in "{<":
            return self.read_message("}" if value == "{" else ">")
        if kind == "string":
            text = _unquote(value)
            while self._at < len(self._tokens) and self._tokens[self._at][0] == "string":
                text += _unquote(self._next()[1])
            return text
        if kind == "word":
            return {"true": True, "false": False}.get(value, value)
        if kind == "number":
            try:
                return int(value, 0) if re.fullmatch(r"[-+]?(0x)?[\da-fA-F]+", value) else float(value.rstrip("fF"))
            except ValueError:
                raise ValueError(f"line {line}: '{value}' is not a number") from None
        raise ValueError(f"line {line}: expected a value, found '{value}'")

    def _next(self) -> tuple[str, str, int]:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        line = text.count("\n", 0, at) + 1
        if match is None:
            raise ValueError(f"line {line}: unexpected character '{text[at]}'")
        if match.lastgroup:
            yield match.lastgroup, match.group(), line
        at = match.end()
    yield "end", "", text.count("\n") + 1


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(0)), text[1:-1])


def _shape(name: str, values: list[Any]) -> Any:
    if name in _MAPS and all(isinstance(value, dict) and "key" in value for value in values):
        return {value["key"]: value.get("value", {}) for value in values}
    return values if name in _LISTS or len(values) > 1 else values[0]
