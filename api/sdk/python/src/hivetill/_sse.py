"""Reads server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from __future__ import annotations

import codecs
import dataclasses
import re

# Not `str.splitlines`, which also splits at characters that texts may contain. A carriage return at the end may be the
# first half of a line end.
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


@dataclasses.dataclass(frozen=True)
class Message:
    """A message of a stream."""

    id: str | None
    event: str
    data: str


class Parser:
    """Collects the bytes of a stream into messages. One that is cut off is dropped: it comes again."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._lines: list[str] = []

    def feed(self, part: bytes) -> list[Message]:
        """Take the next part; return the messages that it completes."""
        *lines, self._rest = _LINE_END.split(self._rest + self._decoder.decode(part))
        messages: list[Message] = []
        for line in lines:
            if line:
                self._lines.append(line)
                continue
            message = _parse(self._lines)
            self._lines = []
            if message:
                messages.append(message)
        return messages


def _parse(lines: list[str]) -> Message | None:
    id: str | None = None
    event = "message"
    data: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            id = value
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
    return Message(id, event, "\n".join(data)) if data or id is not None else None
