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

"""Wait with a deadline: try, pause, try again.

.. code-block:: python

    for _ in waiting.attempts(60):
        if server_is_up():
            return
    raise exception.Unreachable(server, 'did not start within 60 s')
"""

import time
from collections.abc import Iterator


def attempts(timeout_s: float, pause_s: float = 0.5) -> Iterator[None]:
    """Allow attempts until a deadline, with a pause between two of them.

    The first attempt comes at once. The last one begins no earlier than the
    deadline, unless the one before it has run past the deadline.

    :param timeout_s: seconds from now to the deadline
    :param pause_s: seconds between two attempts
    """
    deadline = time.monotonic() + timeout_s
    while True:
        yield
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(pause_s, left_s))
