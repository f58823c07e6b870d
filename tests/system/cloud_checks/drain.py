# SPDX-License-Identifier: Apache-2.0

"""Empty a host while the cloud changes.

The first live migration fails, and a new instance arrives on the target during
the moves. ``hpcvirt drain`` must plan again, empty the host, and keep it free
of new instances until it is released.
"""

from tests.system.cloud import cloud as clouds
from tests.system.cloud_checks import load
from tests.system.cloud_checks import tempest_run

#: The second of the hosts of fleet_client.
TARGET = 'intel2'

#: Seconds that the drain may take, with its preparation.
LIMIT_S = 400


def check(cloud: clouds.Cloud) -> None:
    """Empty the host.

    :raises CloudError: if it is not empty, or does not stay empty
    """
    settings = cloud.settings
    fails = (settings.run / 'nova' / TARGET / 'instances'
             / 'fail-live-migration')
    load.finish(load.script(
        cloud, 'drain_client.py', settings.program('hpcvirt'),
        str(settings.etc / 'nova' / 'nova-scheduler.conf'),
        tempest_run.images(settings)['simulated'], str(fails)),
        'emptying a host', LIMIT_S)
