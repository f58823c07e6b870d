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
