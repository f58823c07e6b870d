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

"""How many pairs would decide what the measured ones leave open."""

import math
import statistics

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import looks
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: How likely the pairs are to decide, if the ratio is as estimated.
POWER = 0.8
#: So many pairs show stragglers with a probability of 95 %, if they are 5 % of
#: all runs.
STRAGGLERS = 60
#: Beyond this number it is wiser to reduce the noise.
MOST = 200


def estimate(judged: judgement.Judgement, run: record.Run,
             figures: int) -> int | None:
    """Estimate how many pairs of a further run decide, with 80 % probability.

    The interval shrinks with the square root of the number of pairs. If the
    ratio is as estimated, it excludes the bound when it is shorter than the
    distance to the bound, by as much as makes that likely. A further run on a
    known subject adds its pairs to the evidence, for a smaller part of the
    errors; any other run is judged by itself.

    :param judged: a figure with an interval and a limit
    :param run: that it was measured in
    :param figures: number of figures that are judged together (Holm)
    :returns: a multiple of 5, more than were measured; None if it is more
        than :data:`MOST`, as for a guest that is exactly at its bound
    """
    if judged.interval is None or judged.limit is None:
        return None
    least = judged.pairs + 1
    if judged.tail and judged.tail.word is judgement.Word.INCONCLUSIVE:
        least = max(least, STRAGGLERS)
    ratio, limit = math.log(judged.interval.ratio), math.log(judged.limit)
    end = judged.interval.low if ratio > limit else judged.interval.high
    distance = abs(ratio - limit)
    if distance <= stats.EQUAL:
        return None
    further = attempts.share(len(judged.earlier) + 2) if run.subject else 1.0
    wanted = (_quantile(further / max(1, figures))
              + statistics.NormalDist().inv_cdf(POWER)) / _quantile(
                  _share(judged, run))
    pairs = max(least, judged.pairs * (
        wanted * abs(math.log(end) - ratio) / distance) ** 2)
    if run.subject:
        pairs = max(pairs - judged.pairs, sample_pairs.LEAST_PAIRS)
    return None if pairs > MOST else 5 * math.ceil(pairs / 5)


def _share(judged: judgement.Judgement, run: record.Run) -> float:
    """Return the part of the errors that an interval took."""
    evidence = attempts.gather(run)
    done = looks.reached(evidence.run.looks, judged.pairs)
    if not done:
        return evidence.share
    return evidence.share * looks.shares(evidence.run.looks)[len(done) - 1]


def _quantile(share: float) -> float:
    return statistics.NormalDist().inv_cdf(1 - share * stats.ALPHA)
