"""Writes the synchronous form of asynchronous sources: generate_sync.py ASYNC_FOLDER SYNC_FOLDER."""

import pathlib
import re
import sys

HEADER = "# Generated from the asynchronous form by generate_sync.py: edit that one.\n"
RULES = [
    (r"^import asyncio\n", ""),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\basync_sleep\b", "sleep"),
    (r"\basyncio_detailed\b", "sync_detailed"),
    (r"\b([sg]et)_async_httpx_client\b", r"\1_httpx_client"),
    (r"\bhandle_async_request\b", "handle_request"),
    (r"\b(aread|aclose|aiter_bytes)\b", lambda found: found[1][1:]),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"Async(?=[A-Z])", ""),
    (r"The asynchronous client\. .*\"\"\"", 'The synchronous client."""'),
]


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.py"):
        old.unlink()
    for path in sorted(source.glob("*.py")):
        text = path.read_text()
        for pattern, replacement in RULES:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        (target / path.name).write_text(HEADER + text)


main()
