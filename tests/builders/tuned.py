# SPDX-License-Identifier: Apache-2.0

"""Experiments with findings that are made up, for their reports."""

import math

from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model
from hpcvirt.tune import report

DOCUMENT = {
    'kind': 'experiment', 'schema_version': 1,
    'name': 'milan', 'fleet': 'fleet.yaml',
    'host_class': 'n1',
    'programs': {'npb-ep': {'benchmark': 'npb-ep', 'minutes': 2},
                 'stream': {'benchmark': 'stream', 'minutes': 1}},
    'choices': {
        'pages': {'1G': {'profile': {'page_size': '1G'}}},
        'quota': {'half': {'extra_specs': {'quota:cpu_shares': '512'}}},
        'ept': {'off': {'host': {'ept': '0'}}},
        'guests': {'four': {'guests_per_host': 4}}},
    'apply': ['./apply.sh'], 'limits': {'hours': 8}}

_COST = model.HostCost(2, 64, 480 * 1024)


def effect(percent, reach=0.8):
    """Return an effect of so many percent, with an interval around it."""
    gain = math.log1p(percent / 100)
    return model.Effect(gain, gain - reach / 100, gain + reach / 100)


def value(choice, name, percent, decision, guard=None, slow=0):
    """Return what was found about a value."""
    return model.ValueFinding(
        choice, name,
        model.HostCost(4 if choice == 'guests' else 2, 64, 480 * 1024),
        effect(percent),
        {'npb-ep': effect(percent), 'stream': effect(percent + 1)},
        effect(percent), decision, 48, 144, slow, guard)


def make_report(recommended=(1, 1, 0, 1), content=None, **more):
    """Return a report of an experiment with one value of each kind."""
    decisions = model.Decision
    choices = tuple(
        model.Choice(name, (experiments.TODAY, *values), (_COST, _COST),
                     name == 'ept')
        for name, values in DOCUMENT['choices'].items())
    found = {
        'values': (
            value('pages', '1G', 2.1, decisions.BETTER),
            value('quota', 'half', -9.5, decisions.WORSE),
            value('ept', 'off', 3, decisions.BETTER,
                  'its runs have 9 stragglers', 9),
            value('guests', 'four', 0.1, decisions.OPEN)),
        'interactions': (model.Interaction(
            ('pages=1G', 'guests=four'), effect(2), ('quota x ept',)),),
        'native': effect(-5),
        'confirmation': model.Confirmation(
            recommended, 10, effect(1.9, 1.5), is_gain=True),
        'recommended': recommended, 'reason': 'fresh boots showed a gain',
        **more}
    planned = model.Configuration(content or {}, None, {}, None, None, 2)
    return report.TuneReport(
        model.Space(experiments.read(DOCUMENT, 'e.yaml'), choices,
                    {recommended: planned}, (), 4),
        model.Findings(**found), [
            model.Trial(model.Step(model.Stage.SCREEN, 0, (0, 0, 0, 0)), {},
                        ended_at=f'2026-11-{day}T10:00:00+00:00')
            for day in (27, 28)])
