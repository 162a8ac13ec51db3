"""Checks metrics of its own; answers the number of the checks, or the text of the first one that fails."""

import traceback

import numpy as np
import triton_python_backend_utils as pb

Family = pb.MetricFamily


def refused(action, text):
    try:
        action()
    except pb.TritonModelException as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError("not refused: " + text)


def check_counter():
    family = Family("test_counter", "first description", Family.COUNTER)
    metric = family.Metric(labels={"a": "b"})
    assert metric.value() == 0
    metric.increment(1.5)
    metric.increment(0)
    assert metric.value() == 1.5
    refused(lambda: metric.increment(-1), "Failed to increment metric value: ")
    refused(lambda: metric.set(1), "Failed to set metric value: ")
    refused(lambda: metric.observe(1), "Failed to observe metric value: ")
    assert metric.value() == 1.5
    same = family.Metric(labels={"a": "b"})
    same.increment(1)
    assert metric.value() == 2.5
    other = Family("test_counter", "other description", Family.COUNTER)
    assert other.Metric(labels={"a": "b"}).value() == 2.5
    refused(lambda: Family("test_counter", "x", Family.GAUGE), "Error when creating MetricFamily: ")
    refused(lambda: Family("nv_own", "x", Family.GAUGE), "Error when creating MetricFamily: ")
    refused(lambda: family.Metric(buckets=[1]), "Unexpected buckets found.")


def check_gauge():
    metric = Family("test_gauge", "a gauge", Family.GAUGE).Metric
    family = Family("test_gauge", "a gauge", Family.GAUGE)
    metric = family.Metric()
    metric.set(3)
    metric.increment(-4.5)
    assert metric.value() == -1.5, metric.value()
    refused(lambda: metric.observe(1), "Failed to observe metric value: ")


def check_histogram():
    family = Family("test_histogram", "a histogram", Family.HISTOGRAM)
    refused(lambda: family.Metric(), "Failed to create metric. Missing required buckets.")
    refused(lambda: family.Metric(buckets=[2, 1]), "ascending")
    metric = family.Metric(labels={}, buckets=[1, 2.5])
    for value in (0.5, 2, 7):
        metric.observe(value)
    refused(lambda: metric.increment(1), "Failed to increment metric value: ")
    refused(lambda: metric.value(), "Failed to get metric value: ")
    empty = Family("test_empty", "no buckets", Family.HISTOGRAM)
    empty.Metric(buckets=[]).observe(1)


def check_deleted():
    family = Family("test_deleted", "deleted", Family.COUNTER)
    metric = family.Metric()
    del family
    refused(lambda: metric.increment(1), "Invalid metric operation as the corresponding 'MetricFamily' has been deleted.")


class TritonPythonModel:
    def initialize(self, args):
        self.kept = Family("test_kept", 'description of "kept"', Family.COUNTER)
        self.metric = self.kept.Metric(labels={"model": args["model_name"], "version": "1"})
        histogram = Family("test_times", "times", Family.HISTOGRAM)
        self.histogram = (histogram, histogram.Metric(labels={"kind": "x"}, buckets=[1, 2.5]))

    def execute(self, requests):
        checks = [check_counter, check_gauge, check_histogram, check_deleted]
        try:
            for check in checks:
                check()
            text = str(len(checks))
        except Exception:
            text = traceback.format_exc()
        self.metric.increment(2)
        for value in (0.5, 2, 7):
            self.histogram[1].observe(value)
        out = pb.Tensor("OUT", np.array([text], dtype=np.object_))
        return [pb.InferenceResponse([out]) for _ in requests]
