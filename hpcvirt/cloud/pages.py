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

"""Read a list of the Compute API page by page."""

from collections.abc import Iterator
from typing import Any

#: Items requested from the API at once; it may return fewer.
SIZE = 500


def every(manager: Any, **filters: Any) -> Iterator[Any]:
    """Yield every item of a list.

    :param manager: a manager of novaclient whose list has pages
    :param filters: arguments of its ``list``
    """
    marker = None
    while page := manager.list(marker=marker, limit=SIZE, **filters):
        yield from page
        # A server that ignores the marker would repeat the page.
        if page[-1].id == marker:
            return
        marker = page[-1].id
