# SPDX-License-Identifier: Apache-2.0

"""Runs of the benchmarks of studies, and their comparison."""

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from tests.builders import runs

UP, DOWN = runs.UP, runs.DOWN
#: Noise that does not change the mean of the logarithms.
NOISE = (0.99, 1 / 0.99, 1.0, 0.98, 1 / 0.98)


def measured(native, guest, metric='mops_total', direction=UP, unit='Mop/s',
             study='S2', case='numa-socket', **more):
    """A run whose geometric means are the two figures."""
    return runs.run(
        [runs.figures({metric: native}, unit, direction)] * len(NOISE),
        [runs.figures({metric: guest * noise}, unit, direction)
         for noise in NOISE],
        metric=metric, study=study, case=case, **more)


def hpcc(native, guest, **more):
    """A run of case small-on of S1."""
    return measured(native, guest, 'HPL_Tflops', UP, 'Tflop/s', study='S1',
                    case='small-on', benchmark='hpcc', launch=None, **more)


def compared(study_id, given):
    study_ = study_catalogue.get(study_id)
    return study_, comparison.compare(study_, given)


def of_row(given, study_id, row_id):
    """The comparison of one row."""
    _, comparisons = compared(study_id, given)
    return next(each for each in comparisons
                if each.row and each.row.id == row_id)
