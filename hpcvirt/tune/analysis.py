# SPDX-License-Identifier: Apache-2.0

"""Analyse the trials of an experiment."""

from collections.abc import Sequence

from hpcvirt.tune import findings
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial


def analyse(space: spaces.Space, budget: spaces.Budget,
            trials: Sequence[trial.Trial]) -> findings.Findings:
    """Analyse the trials so far.

    Only complete blocks count for effects, and there are none before the
    second replicate.
    """
    raise NotImplementedError
