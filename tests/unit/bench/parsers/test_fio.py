# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.bench.parsers import base

#: Of fio 3.33 of Debian 12 on a virtual disk.
OUTPUT = base.data('fio/fio-3.33.json')
#: What fio prints before the document on some machines.
NOTE = b'fio: this platform does not support process shared mutexes\n'

GOOD_OUTPUTS = ((OUTPUT, {}), (NOTE + OUTPUT, {'version': 'fio-3.33'}))


def changed(job, value, *path):
    """Return the output with another value in a job."""
    document = json.loads(OUTPUT)
    *before, last = path
    inner = document['jobs'][job]
    for key in before:
        inner = inner[key]
    inner[last] = value
    return json.dumps(document)


class TestFio(base.ParserTestCase):
    parser = 'fio'
    refused = (
        ('a document cut short', 'not a complete JSON document',
         OUTPUT[:-3]),
        ('another document', 'no document of fio', '{"jobs": []}'),
        ('no document', 'no document of fio', 'fio: command not found'),
        ('a job that failed', 'the job read had an error',
         changed(1, 5, 'error')),
        ('another job', "a job 'seq'", changed(0, 'seq', 'jobname')),
        ('no bandwidth', 'the bandwidth of write is 0',
         changed(0, 0, 'write', 'bw_bytes')),
        ('no latency', 'the latency of read is None',
         changed(1, {}, 'read', 'lat_ns')),
        ('a job that is none', 'a job None', json.dumps(
            {'jobs': [1, 2]})),
    )

    def test_both_jobs_are_read(self):
        self.assertEqual(
            {'write_mb_s': 1118.481066, 'read_latency_us': 61.538737374},
            self.figures(OUTPUT))
