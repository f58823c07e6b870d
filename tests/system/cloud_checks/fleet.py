# SPDX-License-Identifier: Apache-2.0

"""Explain refusals on the controller, and make the proposed changes.

For each kind of refusal, a request is made that Nova refuses. ``hpcvirt
explain`` must give the reason. After the change that it proposes, or that
follows from the reason, Nova must accept the request. ``capacity``,
``explain`` and ``make-room`` must give the same answers from ``fleet dump`` as
from the cloud. After a pass of ``make-room --standing``, a request that was
refused before must succeed at once.
"""

from tests.system.cloud import cloud as clouds
from tests.system.cloud_checks import load
from tests.system.cloud_checks import tempest_run

#: Seconds that all requests may take.
LIMIT_S = 500


def check(cloud: clouds.Cloud) -> None:
    """Make and explain the requests.

    :raises CloudError: if an explanation is wrong or does not help
    """
    settings = cloud.settings
    load.finish(load.script(
        cloud, 'fleet_client.py', settings.program('hpcvirt'),
        str(settings.etc / 'nova' / 'nova-scheduler.conf'),
        tempest_run.images(settings)['simulated']),
        'explaining refusals', LIMIT_S)
