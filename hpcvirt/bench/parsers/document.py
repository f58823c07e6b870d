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

"""Read outputs that are JSON documents."""

import json
from typing import Any
from typing import NoReturn

from hpcvirt.bench.parsers import number
from hpcvirt.bench.parsers import reading


def load(text: str) -> dict[str, Any] | None:
    """Read a JSON object; None if the text is not one.

    :raises Refused: for JSON that is cut short, or has NaN or infinity
    """
    stripped = text.strip()
    if not stripped.startswith('{'):
        return None
    try:
        document = json.loads(stripped, parse_constant=_refuse)
    except (ValueError, RecursionError) as exc:
        raise reading.Refused(
            f'not a complete JSON document: {exc}') from exc
    return document if isinstance(document, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise reading.Refused(f'the document holds {constant}')


def inner(document: object, *path: str) -> object:
    """Return the value at a path of keys, None if there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def score(value: object, what: str) -> float:
    """Check a figure of a document: a number, not text or a truth value.

    :raises Refused: otherwise, or if it cannot be a measurement
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise reading.Refused(
            f'{what} is {value!r:.60}, which is not a number')
    if not number.SMALLEST <= value <= number.LARGEST:
        raise reading.Refused(f'{what} is {value!r:.60}, which is not above '
                              '0 or not a measurement')
    return float(value)
