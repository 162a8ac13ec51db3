"""Plain functions, as models of the tests."""

import asyncio
import os
import time

import numpy as np

executions = 0


def double(x):
    return x * 2


def batch_rows(x):
    global executions
    executions += 1
    return np.full((len(x), 1), len(x), np.int64), np.full((len(x), 1), executions, np.int64)


def shout(text):
    return np.array([[value.upper() + "!" for value in row] for row in text], dtype=object)


def wrong_dtype(x):
    return x.astype(np.float64)


def wrong_name(z):
    return z


def wrong_rows(x):
    return x[:1]


def fail(x):
    raise ValueError(f"no {int(x[0, 0])}")


def die(x):
    if x[0, 0] < 0:
        os._exit(7)
    return x


def hang(x):
    while x[0, 0] < 0:
        time.sleep(0.01)
    return x


def count(x):
    for number in range(int(x[0, 0])):
        yield np.array([[number]], np.float32)


def count_aloud(x):
    number = 0
    try:
        while number < x[0, 0]:
            print("yields", number)
            yield np.array([[number]], np.float32)
            number += 1
    finally:
        print("closed at", number)


async def count_later(x):
    number = 0
    try:
        while number < x[0, 0]:
            print("yields", number)
            yield np.array([[number]], np.float32)
            number += 1
    finally:
        print("closed at", number)


async def meet(x):
    """Answers once as many calls are under way as the first value says."""
    global executions
    executions += 1
    while executions < x[0, 0]:
        await asyncio.sleep(0.001)
    return x


def loud(x):
    for number in range(10_000):
        print("line", number)
    print("x" * 100_000)
    return x


def environment(text):
    return np.array([[os.environ.get(name, "unset") for name in row] for row in text], dtype=object)


def process_id(x):
    return np.array([os.getpid()], np.int64)


def same(x):
    return x


kept = []


def keep(x):
    """Keeps every input, and returns the first one."""
    kept.append(x)
    return kept[0]


def fork(x):
    """Returns its input, which a fork has changed for itself."""
    if os.fork() == 0:
        x[:] = 0
        os._exit(0 if not x.any() else 1)
    assert os.wait()[1] == 0
    return x


async def same_later(x):
    await asyncio.sleep(0.001)
    return x


def descriptors(text):
    """Kinds of the open descriptors of this process."""
    names = []
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}").split(":")[0])
        except FileNotFoundError:
            pass
    return np.array([[" ".join(names)]], dtype=object)


def idle(x):
    print("pid", os.getpid())
    return x


def busy(x):
    print("pid", os.getpid())
    while True:
        pass


def doubled_by_single(x):
    import triton_python_backend_utils as pb_utils

    request = pb_utils.InferenceRequest(
        model_name="single", requested_output_names=["y"], inputs=[pb_utils.Tensor("x", x)]
    )
    return request.exec().output_tensors()[0].as_numpy()
