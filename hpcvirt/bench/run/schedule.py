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

"""The order in which the samples of a run are taken.

Warm-ups come first, in each arm in turn, then the pairs. Which arm of a pair
goes first is drawn by lot: a slow drift of the host (temperature, page cache,
neighbours) affects both arms alike, and so does what a run leaves behind for
the next one.
"""

import dataclasses
import random

from hpcvirt.bench.model import record

ARMS = (record.Arm.NATIVE, record.Arm.GUEST)


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedSample:
    """One sample to be taken.

    :ivar position: number in the order of execution, from 0
    :ivar pair: number of the pair, or of the warm-up; both from 0
    """

    position: int
    arm: record.Arm
    pair: int
    warm_up: bool


def order(pairs: int, warm_ups: int,
          purpose: record.Purpose = record.Purpose.COMPARE,
          launch: record.Launch | None = None,
          lot: str = '') -> tuple[PlannedSample, ...]:
    """Order the samples of a run.

    :param pairs: pairs that count, at least 1
    :param warm_ups: samples per arm that do not count
    :param purpose: an unpaired run has samples of the guest only
    :param launch: a guest that is rebooted before each sample is not warmed
        up
    :param lot: which orders are drawn; equal lots give equal orders
    """
    dice = random.Random(lot)  # noqa: S311 - no secret
    is_unpaired = purpose is record.Purpose.UNPAIRED
    is_cold = launch is record.Launch.COLD
    found: list[PlannedSample] = []
    for number in range(warm_ups + pairs):
        warm_up = number < warm_ups
        pair = number if warm_up else number - warm_ups
        arms = ARMS if warm_up or dice.random() < 0.5 else ARMS[::-1]
        for arm in (record.Arm.GUEST,) if is_unpaired else arms:
            if not (is_cold and warm_up and arm is record.Arm.GUEST):
                found.append(PlannedSample(len(found), arm, pair, warm_up))
    return tuple(found)


def missing(run: record.Run) -> tuple[PlannedSample, ...]:
    """List the samples that a run still lacks, in their order."""
    taken = {sample.position for sample in run.samples}
    return tuple(
        planned for planned in order(run.planned_pairs, run.planned_warm_ups,
                                     run.purpose, run.launch, run.id)
        if planned.position not in taken)
