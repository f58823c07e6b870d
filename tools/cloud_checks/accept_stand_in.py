# SPDX-License-Identifier: Apache-2.0

"""Run hpcvirt on a cloud where this machine stands in for all instances.

The cloud's Python environment runs it with the arguments of hpcvirt. The
simulated hosts have no guests and no network: their instances are created
without one, and what is to run in one of them runs here.
"""

import sys

from novaclient.v2 import servers as nova_servers

from hpcvirt.bench.execute import local
from hpcvirt.cloud import servers
from hpcvirt.cmd import main
from hpcvirt.cmd.bench import targets

_create = nova_servers.ServerManager.create


def _without_network(manager, *args, **more):
    return _create(manager, *args, **{**more, 'nics': 'none'})


if __name__ == '__main__':
    nova_servers.ServerManager.create = _without_network
    servers._addresses = lambda *_: ('127.0.0.1', '127.0.0.1')
    targets._ssh = lambda *_: local.LocalExecutor()
    sys.exit(main.main(sys.argv[1:]))
