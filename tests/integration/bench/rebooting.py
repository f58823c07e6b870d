# SPDX-License-Identifier: Apache-2.0

"""A guest that can be rebooted: this machine, with a boot id for each boot."""

import dataclasses
import re
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import machine_facts


def other_file(name, text):
    """Let all machines have a file with another first line."""
    return mock.patch.object(
        machine_facts, 'READ', machine_facts.READ.replace(
            'cd /', f"cd /\necho '{name}={text}'"))


class Guest(local.LocalExecutor):
    """A place whose kernel is another after each reboot.

    :ivar silent: commands that are not answered while it boots
    :ivar first_boot: the number of its first boot
    :ivar done: what was done to it, in order
    """

    name = 'guest'

    def __init__(self, silent=0, deaf=False, first_boot=0):
        self._boots = first_boot
        self._coming_up = 0
        self._silent = silent
        self._deaf = deaf
        self.done = []

    def run(self, argv, stdin=b'', timeout_s=executor.SHORT_S):
        if self._coming_up:
            self._coming_up -= 1
            raise exception.ConnectionLost('guest: no route')
        if argv[0] == 'sync':
            self.done.append('sync')
            return executor.Completed(0, b'', b'')
        done = super().run(argv, stdin, timeout_s)
        return dataclasses.replace(done, stdout=re.sub(
            rb'^(.*/|)boot_id=.*', rb'\1boot_id=boot %d' % self._boots,
            done.stdout, flags=re.MULTILINE))

    def reboot(self):
        self.done.append('reboot')
        if not self._deaf:
            self._boots += 1
            self._coming_up = self._silent
