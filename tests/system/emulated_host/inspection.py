# SPDX-License-Identifier: Apache-2.0

"""Inspect this machine with the collectors of ironic-python-agent.

    python -m tests.system.emulated_host.inspection FILE

It runs on an emulated host instead of the agent, which would send the same
data to Ironic. The collector "default" needs a RAM disk with udev; its
functions that find processors, memory and interfaces do not.
"""

import sys

from ironic_python_agent import config
from ironic_python_agent import encoding
from ironic_python_agent import errors
from ironic_python_agent import hardware
from ironic_python_agent import inspector
from ironic_python_agent import utils
from oslo_config import cfg

COLLECTORS = ('pci-devices', 'numa-topology')


def main() -> int:
    """Write an inventory and the data of plug-ins, as Ironic stores them."""
    cfg.CONF([], project=config.__name__)
    # There is no disk to wait for.
    cfg.CONF.set_override('disk_wait_attempts', 0)
    failures = utils.AccumulatedFailures(exc_class=errors.InspectionError)
    data: dict[str, object] = {}
    for extension in inspector.extension_manager(COLLECTORS):
        extension.plugin(data, failures)
    failures.raise_if_needed()
    manager = hardware.GenericHardwareManager()
    inventory = {'cpu': manager.get_cpus(), 'memory': manager.get_memory(),
                 'interfaces': manager.list_network_interfaces()}
    with open(sys.argv[1], 'w', encoding='utf-8') as stream:
        stream.write(encoding.RESTJSONEncoder().encode(
            {'inventory': inventory, 'plugin_data': data}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
