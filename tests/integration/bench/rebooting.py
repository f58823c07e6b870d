# SPDX-License-Identifier: Apache-2.0

"""A guest that can be rebooted: this machine, with a boot id for each boot."""

import dataclasses
import re

from hpcvirt import exception
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import reboot


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
        if argv[-1] == reboot.BOOT_ID:
            return executor.Completed(0, b'boot %d\n' % self._boots, b'')
        if argv[0] == 'sync':
            self.done.append('sync')
            return executor.Completed(0, b'', b'')
        done = super().run(argv, stdin, timeout_s)
        if environment.FACTS in argv:
            return dataclasses.replace(done, stdout=re.sub(
                rb'^boot_id=.*', b'boot_id=boot %d' % self._boots,
                done.stdout, flags=re.MULTILINE))
        return done

    def reboot(self):
        self.done.append('reboot')
        if not self._deaf:
            self._boots += 1
            self._coming_up = self._silent
