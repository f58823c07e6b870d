# SPDX-License-Identifier: Apache-2.0

"""Reboot a guest, so that the next sample is the first since it started.

The first run in a guest lost 9 %, later runs lost 40 % [LBNL-Partitioning]:
the host allocates memory when the guest first touches it. A rebooter, such as
:mod:`hpcvirt.cloud.servers` for an instance, reboots the guest; this module
checks that the guest has booted.
"""

from typing import Protocol

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts

#: A guest under software emulation takes minutes to boot.
BOOT_S = 900.0
PAUSE_S = 2.0
#: Time limit of a command while the guest boots.
ANSWER_S = 15.0


class Rebooter(Protocol):
    """Something that can reboot one guest."""

    def reboot(self) -> None:
        """Restart the guest in a new process of the hypervisor.

        :raises Unreachable: if it cannot be restarted
        """


def reboot(place: executor.Executor, rebooter: Rebooter,
           patience_s: float = BOOT_S, pause_s: float = PAUSE_S) -> None:
    """Reboot a guest and wait until it answers.

    :raises Unreachable: if it does not answer after a reboot in time
    """
    before = _boot_id(place, executor.SHORT_S)
    # Files that were copied to the guest may still be in its page cache only.
    place.run(['sync'], timeout_s=300)
    rebooter.reboot()

    def check() -> None:
        # The connection is to the process that has ended.
        place.close()
        place.expect_restart()
        if _boot_id(place, ANSWER_S) == before:
            raise exception.Unreachable('it is still running as before')
    try:
        waiting.retry(check, exception.Unreachable, patience_s, pause_s)
    except exception.Unreachable as exc:
        raise exception.Unreachable(
            f'{place.name}: did not reboot within {patience_s:g} s: {exc}'
        ) from exc


def _boot_id(place: executor.Executor, timeout_s: float) -> str:
    name = machine_facts.BOOT_ID
    found = machine_facts.read(place, name, timeout_s=timeout_s).line(name)
    if not found:
        raise exception.Unreachable(f'{place.name}: cannot read /{name}')
    return found
