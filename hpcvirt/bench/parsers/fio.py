# SPDX-License-Identifier: Apache-2.0

"""Read the JSON output of fio 3: a job ``write`` and a job ``read``.

Lines before the document are messages of fio.
"""

from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('version', 'such as fio-3.33'),
)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output."""
    _, brace, rest = text.partition('{')
    document = reading.load_document(brace + rest) or {}
    jobs = document.get('jobs')
    if not isinstance(jobs, list) or len(jobs) != 2:
        raise reading.Missing('no document of fio with two jobs')
    for name, job in zip(('write', 'read'), jobs, strict=True):
        found = reading.inner(job, 'jobname')
        reading.require(found == name, f'a job {found!r:.40}, not {name!r}')
        reading.require(reading.inner(job, 'error') == 0,
                        f'the job {name} had an error')
    written = reading.score(reading.inner(jobs[0], 'write', 'bw_bytes'),
                            'the bandwidth of write')
    latency = reading.score(reading.inner(jobs[1], 'read', 'lat_ns', 'mean'),
                            'the latency of read')
    return reading.Reading(
        {'write_mb_s': written / 1e6, 'read_latency_us': latency / 1e3},
        {'version': str(document.get('fio version', ''))[:40]})
