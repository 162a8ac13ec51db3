"""Custom metrics of a model, in the server's metrics."""

from __future__ import annotations

import enum
import math
import os
import weakref
from typing import Any, Optional, Sequence

from .counter import Counter
from .errors import TritonModelException, expect, expect_text
from .host import Host, current_host

_FAMILY_DELETED = (
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should "
    "be deleted AFTER its corresponding 'Metric' objects have been deleted."
)


class MetricKind(enum.IntEnum):
    """Kind of a family."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


_counts = Counter()
os.register_at_fork(after_in_child=_counts.reset)


def _next_number() -> int:
    """A number that no fork of this process uses."""
    return (os.getpid() << 24) + _counts.next() % (1 << 24)


class Metric:
    """One metric of a family; made by `MetricFamily.Metric`."""

    __slots__ = ("_family", "_host", "_number", "_owner", "__weakref__")

    _host: Host
    _family: weakref.ref[MetricFamily]
    _number: int
    # Process that made the metric; a fork does not release it.
    _owner: int

    def __init__(self) -> None:
        raise TypeError("a metric comes from MetricFamily.Metric()")

    def increment(self, value: float) -> None:
        """Adds to a counter or a gauge."""
        self._do("increment", "Failed to increment metric value: ", value)

    def set(self, value: float) -> None:
        """Sets a gauge."""
        self._do("set", "Failed to set metric value: ", value)

    def observe(self, value: float) -> None:
        """Adds an observation to a histogram."""
        self._do("observe", "Failed to observe metric value: ", value)

    def value(self) -> float:
        """Present value of a counter or a gauge."""
        return float(self._ask({"do": "value", "metric": self._number}, "Failed to get metric value: "))

    def _do(self, operation: str, prefix: str, value: float) -> None:
        self._ask({"do": operation, "metric": self._number, "value": _wire_number(value)}, prefix)

    def _ask(self, header: dict[str, Any], prefix: str) -> Any:
        if self._family() is None:
            raise TritonModelException(_FAMILY_DELETED)
        return ask_metric(self._host, header, prefix)

    def __del__(self) -> None:
        if getattr(self, "_owner", None) == os.getpid():
            _drop(self._host, {"do": "drop_metric", "metric": self._number})


class MetricFamily:
    """Metrics of one name; lives as long as the object, and its metrics with it."""

    __slots__ = ("_host", "_kind", "_number", "_owner", "__weakref__")

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        expect_text("name", name)
        expect_text("description", description)
        self._kind = expect("kind", kind, MetricKind)
        self._host = current_host()
        self._number = _next_number()
        header = {
            "do": "family",
            "family": self._number,
            "name": name,
            "description": description,
            "kind": kind.name.lower(),
        }
        ask_metric(self._host, header, "Error when creating MetricFamily: ")
        self._owner = os.getpid()

    def Metric(  # noqa: N802 (the name is the API's)
        self, labels: Optional[dict[str, str]] = None, buckets: Optional[Sequence[float]] = None
    ) -> Metric:
        """A metric of the family; the same labels give the same metric. Histograms need ascending `buckets`."""
        header: dict[str, Any] = {"do": "metric", "family": self._number, "labels": _check_labels(labels)}
        if self._kind is MetricKind.HISTOGRAM:
            if buckets is None:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
            header["buckets"] = _check_buckets(buckets)
        elif buckets is not None:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        metric = Metric.__new__(Metric)
        metric._number = header["metric"] = _next_number()
        metric._family = weakref.ref(self)
        metric._host = self._host
        ask_metric(self._host, header, "Failed to create metric: ")
        metric._owner = os.getpid()
        return metric

    def __del__(self) -> None:
        if getattr(self, "_owner", None) == os.getpid():
            _drop(self._host, {"do": "drop_family", "family": self._number})


def ask_metric(host: Host, header: dict[str, Any], prefix: str) -> Any:
    """Does one operation; an error of the server gets `prefix`, unless it has it already."""
    try:
        return host.metric(header)
    except TritonModelException as error:
        text = str(error)
        raise TritonModelException(text if text.startswith(prefix) else prefix + text) from None


def _drop(host: Host, header: dict[str, Any]) -> None:
    # A finalizer may run anywhere, so another thread sends.
    host.cleanup.add(lambda: host.drop_metric(header))
    host.cleanup.start()


def _wire_number(value: Any) -> Any:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"a metric's value must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise TypeError("a metric's value must fit into a double") from None
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")


def _check_labels(labels: Optional[dict[str, str]]) -> dict[str, str]:
    if labels is None:
        return {}
    expect("labels", labels, dict)
    for key, value in labels.items():
        expect_text("a label's name", key)
        expect_text("a label's value", value)
    return labels


def _check_buckets(buckets: Sequence[float]) -> list[Any]:
    numbers = [_wire_number(bound) for bound in expect("buckets", buckets, list, tuple)]
    values = [float(number) for number in numbers]
    if any(math.isnan(value) for value in values) or any(a >= b for a, b in zip(values, values[1:])):
        raise TritonModelException(
            f"Failed to create metric. Buckets must be strictly ascending, found {list(buckets)}."
        )
    return numbers
