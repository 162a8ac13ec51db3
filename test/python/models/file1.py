"""Imported by triton_imports.py."""

VALUE = 21
