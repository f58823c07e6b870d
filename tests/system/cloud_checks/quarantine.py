# SPDX-License-Identifier: Apache-2.0

"""Let ``hpcvirt host supervise`` put a host in quarantine, and release it.

A host exports that it is slow. New instances must start on an equal host, and
``hpcvirt explain`` must say why. Then Placement is stopped while the signature
clears: the release must not be lost, and must complete when Placement answers
again.
"""

from tests.builders import supervised
from tests.system.cloud import cloud as clouds
from tests.system.cloud import progress
from tests.system.cloud_checks import load
from tests.system.cloud_checks import tempest_run

#: The first of the hosts of fleet_client.
SLOW = 'intel1'

#: The score of the host in each part.
SCORES = {'slow': 1.7, 'quiet': 0.0, 'outage': 0.0, 'over': 0.0}

#: Seconds for one part.
LIMIT_S = 120


def check(cloud: clouds.Cloud) -> None:
    """Let the host be slow for a while, and start instances.

    :raises CloudError: if an instance lands on the wrong host
    """
    settings = cloud.settings
    work = settings.run / 'quarantine'
    work.mkdir(exist_ok=True)
    (work / 'state').unlink(missing_ok=True)
    for part, score in SCORES.items():
        words = supervised.write(work, SLOW, score)
        (work / 'words').write_text('\n'.join(words))
        try:
            if part == 'outage':
                cloud.stop('placement')
            with progress.step(f'quarantine: {part}'):
                load.finish(load.script(
                    cloud, 'quarantine_client.py', settings.program('hpcvirt'),
                    str(settings.etc / 'nova' / 'nova-scheduler.conf'),
                    tempest_run.images(settings)['simulated'], str(work),
                    part), f'quarantine, {part}', LIMIT_S)
        finally:
            if part == 'outage':
                cloud.start('placement')
