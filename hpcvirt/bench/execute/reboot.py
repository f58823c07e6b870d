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

"""A guest that was just started: the first run in it is not like the others.

It lost 9 % where later ones lost 40 % [LBNL-Partitioning]: where its
memory lies on the host is settled as it is touched. Who can start a guest anew
(:mod:`hpcvirt.cloud.servers` for an instance) does one thing; that it has
really come up anew is seen here.
"""

import time
from typing import Protocol

from hpcvirt import exception
from hpcvirt.bench.execute import executor

#: A guest under software emulation takes minutes.
BOOT_S = 900.0
PAUSE_S = 2.0
#: How long a guest that is coming up may keep a question waiting.
ANSWER_S = 15.0
#: Another one after each boot of a Linux kernel.
BOOT_ID = '/proc/sys/kernel/random/boot_id'


class Relaunch(Protocol):
    """Who can start a guest anew."""

    def relaunch(self) -> None:
        """Have the guest started anew, as a new process of the hypervisor.

        :raises Unreachable: if that cannot be done
        """


def relaunch(place: executor.Executor, guest: Relaunch,
             patience_s: float = BOOT_S, pause_s: float = PAUSE_S) -> None:
    """Start a guest anew and wait until it answers.

    :raises Unreachable: if it does not come back in time
    """
    before = _boot_id(place, executor.SHORT_S)
    # What was put there must not be lost with its page cache.
    place.run(['sync'], timeout_s=300)
    guest.relaunch()
    deadline = time.monotonic() + patience_s
    while True:
        # The connection ends in a guest that is no more.
        place.close()
        try:
            if _boot_id(place, ANSWER_S) != before:
                return
            said = 'it runs on as before'
        except exception.Unreachable as exc:
            said = str(exc)
        if time.monotonic() > deadline:
            raise exception.Unreachable(
                f'{place.name}: was not relaunched within {patience_s:g} s: '
                f'{said}')
        time.sleep(pause_s)


def _boot_id(place: executor.Executor, timeout_s: float) -> bytes:
    done = place.run(['cat', BOOT_ID], timeout_s=timeout_s)
    if done.status:
        raise exception.Unreachable(f'{place.name}: tells no {BOOT_ID}')
    return done.stdout.strip()
