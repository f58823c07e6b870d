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
the next one. A guest that is relaunched during the run is warmed up again in
each of its boots.

The first pairs may have a *control*, a further native sample on the other side
of the native one than that of the guest. The first of two native samples often
follows a run of the guest, the second one never does.
"""

import dataclasses
import random
from collections.abc import Sequence

from hpcvirt.bench.analysis import boots
from hpcvirt.bench.model import record

ARMS = (record.Arm.NATIVE, record.Arm.GUEST)


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedSample:
    """One sample to be taken.

    :ivar position: number in the order of execution, from 0
    :ivar pair: number of the pair, or of the warm-up; both from 0
    :ivar relaunch: the guest is relaunched before this sample
    :ivar control: a further native sample next to that of its pair
    """

    position: int
    arm: record.Arm
    pair: int
    warm_up: bool
    relaunch: bool = False
    control: bool = False


def order(pairs: int, warm_ups: int,
          purpose: record.Purpose = record.Purpose.COMPARE,
          launch: record.Launch | None = None,
          lot: str = '',
          of_boots: Sequence[int] = (),
          controls: int = 0) -> tuple[PlannedSample, ...]:
    """Order the samples of a run.

    :param pairs: pairs that count, at least 1
    :param warm_ups: samples per arm that do not count
    :param purpose: an unpaired run has samples of the guest only
    :param launch: a guest that is rebooted before each sample is not warmed
        up
    :param lot: which orders are drawn; equal lots give equal orders
    :param of_boots: the number of pairs in each boot of a guest that is
        relaunched before each of them; empty if it is not
    :param controls: number of pairs with a control
    """
    dice = random.Random(lot)  # noqa: S311 - no secret
    is_unpaired = purpose is record.Purpose.UNPAIRED
    is_cold = launch is record.Launch.COLD
    steps: list[tuple[int, record.Arm, int, str]] = []
    first = 0
    for boot, size in enumerate(of_boots or (pairs,)):
        # The host stays warm while the guest is relaunched.
        steps += [(boot, arm, number, 'warm-up')
                  for number in range(boot * warm_ups, (boot + 1) * warm_ups)
                  for arm in (ARMS if boot == 0 else (record.Arm.GUEST,))]
        for pair in range(first, first + size):
            both = [(boot, arm, pair, '') for arm in ARMS]
            if pair < controls:
                both.insert(0, (boot, record.Arm.NATIVE, pair, 'control'))
            steps += both if dice.random() < 0.5 else both[::-1]
        first += size
    found: list[PlannedSample] = []
    launched = -1 if of_boots else 0
    for boot, arm, pair, kind in steps:
        is_guest, warm_up = arm is record.Arm.GUEST, kind == 'warm-up'
        if (is_cold and is_guest and warm_up) or (
                is_unpaired and not is_guest):
            continue
        found.append(PlannedSample(
            len(found), arm, pair, warm_up,
            is_guest and (is_cold or boot > launched), kind == 'control'))
        if is_guest and of_boots:
            launched = boot
    return tuple(found)


def missing(run: record.Run) -> tuple[PlannedSample, ...]:
    """List the samples that a run still lacks, in their order.

    If the guest is relaunched, what comes after the pilot is not known before
    its end, and may change.
    """
    taken = {sample.position for sample in run.samples}
    return tuple(
        planned for planned in order(
            run.planned_pairs, run.planned_warm_ups, run.purpose, run.launch,
            run.id, boots.sizes(run) if run.relaunched else (),
            run.planned_controls)
        if planned.position not in taken)
