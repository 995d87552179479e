"""Checks the settings of a client."""

from __future__ import annotations

import httpx

from .errors import HivetillError


def base_url_of(text: str) -> str:
    """Return the URL of a gateway without a final slash."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise HivetillError(f"base_url is no URL: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise HivetillError("base_url is no http(s) URL")
    return text.rstrip("/")


def checked_key(key: str | None) -> str | None:
    """Return an API key that can be sent: an error about a header that cannot would print the key."""
    if key is not None and not (key and all("!" <= character <= "~" for character in key)):
        raise HivetillError("api_key is empty, or contains a space or a line break")
    return key
