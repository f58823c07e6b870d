# SPDX-License-Identifier: Apache-2.0

"""Runs by which a host is compared with its class."""

from hpcvirt.bench.model import record
from tests.builders import runs

#: What the hosts of the class have in common.
IDENTITY = {'command': 'hs06 8', 'guest cpu.model': 'EPYC 7763',
            'guest kernel': '6.1'}


def run(host, score=100.0, count=5, **more):
    """Make a run of HS06 in guests of a host, each in a boot of its own.

    :param score: about what each guest reaches
    :param count: the guests
    """
    return record.Run(**{
        'id': host, 'benchmark': 'hs06', 'variant': '', 'host': host,
        'launch': record.Launch.WARM,
        'purpose': record.Purpose.UNPAIRED, 'planned_pairs': 5,
        'identity': IDENTITY, 'started_at': '2026-11-01T00:00:00+00:00',
        'samples': tuple(record.Sample(
            record.Side.GUEST, number, number,
            runs.figures({'score': score * (1 + number / 1000)}, 'HS06'),
            launch_id=f'boot {number}')
            for number in range(count)), **more})
