"""Python models of the attacks: one that answers, and one that misbehaves as its input says."""

import ctypes
import os
import re
import signal
import subprocess
import sys

import numpy as np

answers = 0


def block(BLOCK):
    """Returns its input."""
    return BLOCK


def misbehave(TEXT):
    return np.array([[run(text) for text in row] for row in TEXT], dtype=object)


def run(text):
    global answers
    if text == "exit":
        os._exit(3)
    elif text == "raise SystemExit":
        sys.exit(3)
    elif text == "segmentation fault":
        ctypes.string_at(0)
    elif text == "abort":
        os.abort()
    elif text == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif text == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif text == "loop":
        while True:
            pass
    elif text == "hold the lock":
        # A match keeps all other threads of Python waiting.
        re.match("(a+)+$", "a" * 64 + "b")
    elif text == "allocate":
        bytearray(2**31)
    elif text == "hoard":
        kept = []
        while True:
            kept.append(bytearray(2**22))
    elif text == "recurse":
        return run(text)
    elif text == "close":
        os.closerange(3, 64)
    elif text == "garbage":
        os.write(3, b"\xff" * 4096)
    elif text == "print":
        for number in range(10_000):
            print("line", number)
        print("x" * 1_000_000, flush=True)
        sys.stderr.write("no line end" * 100_000)
    elif text == "write":
        with open(os.path.join(os.environ["TMPDIR"], "written"), "wb") as file:
            file.write(bytes(2**20))
    elif text == "leave a child":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2)"])
        os._exit(4)
    answers += 1
    return f"answer {answers}"
