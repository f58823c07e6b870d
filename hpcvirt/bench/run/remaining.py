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

"""Estimate how long a run still takes, from the samples that it has.

The time between the starts of two samples includes what is done besides the
program. The median of an arm is not disturbed by an interruption.
"""

import datetime
import itertools
import statistics

from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule


def seconds(run: record.Run) -> float | None:
    """Estimate the time of the samples that a run still lacks.

    :returns: None if it has no sample yet
    """
    taken = sorted(run.samples, key=lambda sample: sample.position)
    durations: dict[record.Arm, list[float]] = {}
    for sample, after in itertools.pairwise((*taken, None)):
        if sample is not None:
            durations.setdefault(sample.arm, []).append(
                _duration(sample, after))
    if not durations:
        return None
    typical = {arm: statistics.median(found)
               for arm, found in durations.items()}
    longest = max(typical.values())
    return sum(typical.get(due.arm, longest)
               for due in schedule.missing(run))


def told(run: record.Run) -> str:
    """Say how long a run still takes; empty if that is not known."""
    left = seconds(run)
    if not left:
        return ''
    minutes = round(left / 60)
    text = f'{left:.0f} s'
    if minutes >= 120:
        text = f'{minutes // 60} h {minutes % 60} min'
    elif minutes >= 2:
        text = f'{minutes} min'
    return f'{"at most" if run.looks else "about"} {text} left'


def _duration(sample: record.Sample, after: record.Sample | None) -> float:
    elapsed_s = sample.elapsed_s or 0.0
    if after is None or not sample.started_at or not after.started_at:
        return elapsed_s
    begin, end = (datetime.datetime.fromisoformat(each.started_at)
                  for each in (sample, after))
    return max(elapsed_s, (end - begin).total_seconds())
