# SPDX-License-Identifier: Apache-2.0

"""Run hpcvirt on a cloud where this machine stands in for all instances.

The cloud's Python environment runs it with the arguments of hpcvirt. The
simulated hosts have no guests and no network: their instances are created
without a network, and their programs run on this machine. After a reboot of an
instance, this machine reports that it has booted.
"""

import dataclasses
import re
import sys

from novaclient.v2 import servers as nova_servers

from hpcvirt.bench.execute import local
from hpcvirt.cloud import servers
from hpcvirt.cmd import main
from hpcvirt.cmd.bench import targets

_create = nova_servers.ServerManager.create
_reboot = servers.ServerRebooter.reboot
_boots = []


class _Guest(local.LocalExecutor):
    def run(self, argv, *args, **more):
        done = super().run(argv, *args, **more)
        return dataclasses.replace(done, stdout=re.sub(
            rb'^(.*/|)boot_id=.*', rb'\1boot_id=boot %d' % len(_boots),
            done.stdout, flags=re.MULTILINE))


def _reboot_one(rebooter):
    _reboot(rebooter)
    _boots.append(rebooter)


def _without_network(manager, *args, **more):
    return _create(manager, *args, **{**more, 'nics': 'none'})


if __name__ == '__main__':
    nova_servers.ServerManager.create = _without_network
    servers._addresses = lambda *_: ('127.0.0.1', '127.0.0.1')
    servers.ServerRebooter.reboot = _reboot_one
    targets._ssh = lambda *_: _Guest()
    sys.exit(main.main(sys.argv[1:]))
