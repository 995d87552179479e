"""The asynchronous client. The synchronous one is generated from it: sdk/generate."""

from .client import AsyncHivetill

__all__ = ["AsyncHivetill"]
