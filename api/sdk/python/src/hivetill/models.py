"""The records of the interface, as the gateway's OpenAPI document describes them."""

from .core.models import *  # noqa: F403
from .core.models import __all__ as __all__
