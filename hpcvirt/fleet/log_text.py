# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Find the documents of hpcvirt in the text of a log.

A document stands behind its mark, in a line that may begin with anything: the
prefix of oslo.log, of syslog or of journald. The line may also be a JSON
object with the message in it, escaped as often as it was passed on (the
formatter of oslo.log, ``journalctl --output json``, containers).

The text is not trusted: a document is read strictly by whoever knows its form,
and what is cut or no document counts as unreadable.
"""

import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization

#: No document is longer, see :data:`hpcvirt.fleet.refusal.MOST_CHARACTERS`.
_MOST_CHARACTERS = 16384

#: Documents that are looked for in one line, and objects around each other.
_MOST_IN_A_LINE = 64
_MOST_LEVELS = 4

_DECODER = json.JSONDecoder()
_UNDECODABLE = (ValueError, RecursionError)


def documents(lines: Iterable[bytes], marks: Collection[str],
              ) -> Iterator[tuple[str, Any]]:
    """Yield each mark with the plain data behind it, None if unreadable."""
    searched = [(mark, mark.encode()) for mark in marks]
    for line in lines:
        for mark, raw in searched:
            if raw in line:
                for plain in _behind(mark, line.decode(errors='replace'), 0):
                    yield mark, plain


def _behind(mark: str, text: str, level: int) -> Iterator[Any]:
    place = -1
    for _ in range(_MOST_IN_A_LINE):
        place = text.find(mark, place + 1)
        if place < 0:
            return
        start = place + len(mark)
        if text.startswith('{\\', start):
            # All that follow are in the same object around them.
            yield from _inside(mark, text, level)
            return
        yield _read(text[start:start + _MOST_CHARACTERS])


def _read(text: str) -> Any:
    try:
        _, end = _DECODER.raw_decode(text)
        return serialization.json_value(text[:end], 'log')
    except (*_UNDECODABLE, exception.InvalidInput):
        return None


def _inside(mark: str, text: str, level: int) -> Iterator[Any]:
    """Look into the JSON object that a line is, or has behind its prefix."""
    brace = text.find('{')
    try:
        outer, _ = _DECODER.raw_decode(text, brace)
    except _UNDECODABLE:
        yield None
        return
    values = [value for value in _texts(outer, 0) if mark in value]
    if not values or level >= _MOST_LEVELS:
        yield None
        return
    yield from _behind(mark, values[0], level + 1)


def _texts(value: Any, level: int) -> Iterator[str]:
    """Yield the texts in an object and in the objects within it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and level < _MOST_LEVELS:
        for item in value.values():
            yield from _texts(item, level + 1)
