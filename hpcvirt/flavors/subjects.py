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
"""Name the hosts or flavors that a message is about."""

from collections.abc import Sequence

_SPELT_OUT = 6
_EXAMPLES = 2


def in_words(names: Sequence[str], noun: str,
             number: int | None = None) -> str:
    """Write ``a, b, c``, or ``300 hosts (a, b, ...)`` if there are many.

    :param number: how many there are, if not all have names here
    """
    count = len(names) if number is None else number
    if count <= min(_SPELT_OUT, len(names)):
        return ', '.join(names)
    return f'{count} {noun} ({", ".join(names[:_EXAMPLES])}, ...)'
