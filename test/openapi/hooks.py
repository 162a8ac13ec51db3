"""Checks for the status 500, which no request may cause, except for those that differences-from-triton.md lists."""

import re

import schemathesis

known = re.compile(
    # An extent that is no unsigned integer, as Triton's tests assert.
    r"Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"
    # A model that no directory has.
    r"|failed to load '.*', failed to poll from model repository$",
    re.DOTALL,
)


@schemathesis.check
def no_internal_error(ctx, response, case) -> None:
    """501 and 503 are answers of the protocol: streams at generate, names of repositories, deadlines."""
    if response.status_code in (501, 503) or response.status_code < 500:
        return
    text = response.json()["error"]
    assert response.status_code == 500 and known.match(text), f"{response.status_code}: {text}"
