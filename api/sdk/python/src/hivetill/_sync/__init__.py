# Generated from the asynchronous form by generate_sync.py: edit that one.
"""The synchronous client."""

from .client import Hivetill

__all__ = ["Hivetill"]
