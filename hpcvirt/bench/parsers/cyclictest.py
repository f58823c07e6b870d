# SPDX-License-Identifier: Apache-2.0

"""Read cyclictest of rt-tests: the file of ``--json``, or the screen.

The screen has whole microseconds, the file the exact mean.
"""

import re
import statistics
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('threads', 'threads that were woken'),
)

_LINE = reading.line(r'T: ?(\d{1,5}) \( *\d+\) P: *\d+ I: *\d+ C: *[1-9]\d* '
                     r'Min: *(\S+) Act: *\S+ Avg: *(\S+) Max: *(\S+)[ \t]*\n')
#: --nsecs pads these columns to eight digits, and otherwise to five.
_NANOSECONDS = re.compile(r'(?:Act|Avg): [ \d]{4,12}\d ')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the file, or the last line of each thread on the screen."""
    document = reading.load_document(text)
    found = reading.inner(document, 'thread')
    threads = {number: [reading.figure(word, 'a time') for word in words]
               for number, *words in _LINE.findall(text)}
    for number, entry in found.items() if isinstance(found, dict) else ():
        threads[number] = [
            reading.score(reading.inner(entry, name), f'{name} of a thread')
            for name in ('min', 'avg', 'max')]
    reading.require(threads, 'no latencies of threads', reading.Missing)
    count = reading.inner(document, 'num_threads') if found else len(threads)
    reading.require(
        count == len(threads)
        and {*threads} == {*map(str, range(len(threads)))}
        and all(sorted(times) == times for times in threads.values()),
        'a thread is missing, or its mean is not between least and most')
    has_nanoseconds = (reading.inner(document, 'resolution_in_ns')
                       or _NANOSECONDS.search(text))
    _, means, most = zip(*threads.values(), strict=True)
    return reading.Reading(
        {'mean_us': statistics.fmean(means), 'max_us': max(most)},
        {'threads': str(len(threads))},
        units=dict.fromkeys(('mean_us', 'max_us'),
                            'ns' if has_nanoseconds else 'us'),
        remarks=() if found or 'threads' in expect else (
            'only --expect threads can show that the output is complete',))
