"""Runs Python models for Nereid: the process beside the server, and `python -m nereid_model` without one."""

from __future__ import annotations

from .errors import ErrorCode, RequestError

__all__ = ["ErrorCode", "RequestError"]
