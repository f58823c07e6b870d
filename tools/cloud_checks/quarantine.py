# SPDX-License-Identifier: Apache-2.0

"""Let ``hpcvirt host watch`` put a host in quarantine, and release it.

The samples of a slow host are replayed. New instances must land on the host
that is like it, and ``hpcvirt explain`` must say why. Then Placement is
stopped while the signature clears: nothing may be lost, and the host must be
released once Placement is back.
"""

import json

from benchmarks import host_samples
from hpcvirt import serialization
from tools.cloud import cloud as clouds
from tools.cloud import progress
from tools.cloud_checks import load
from tools.cloud_checks import tempest_run

#: Minutes of a host in service, until the sign is on, and until it is off.
QUIET = [{'system': 0.02, 'interrupts': 1000.0}]
MINUTES = {'slow': [*QUIET * 35, *[host_samples.SHOOTDOWNS] * 10],
           'outage': QUIET * 30, 'over': QUIET}

#: Seconds for one part.
LIMIT_S = 120


def check(cloud: clouds.Cloud) -> None:
    """Replay the samples, and start instances.

    :raises CloudError: if an instance lands on the wrong host
    """
    settings = cloud.settings
    work = settings.run / 'quarantine'
    work.mkdir(exist_ok=True)
    (work / 'state').unlink(missing_ok=True)
    last = None
    for part, minutes in MINUTES.items():
        samples = list(host_samples.make_samples(minutes, last))
        last = samples[-1]
        (work / part).write_text(''.join(
            f'{json.dumps(serialization.dump(sample))}\n'
            for sample in samples))
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
