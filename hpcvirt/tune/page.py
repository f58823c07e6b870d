# SPDX-License-Identifier: Apache-2.0

"""Write the findings of an experiment as one self-contained HTML page."""

import math
from typing import Any

from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import charts
from hpcvirt.page import templates
from hpcvirt.tune import findings as finding_types
from hpcvirt.tune import report as reports

TITLE = 'What pays on these hosts'

#: The drawings cover at least this gain and loss, as logarithms.
_MIN_SCALE = 0.02

#: Decision to the class of its color.
_COLORS = {finding_types.Decision.BETTER: 'PASS',
           finding_types.Decision.WORSE: 'FAIL',
           finding_types.Decision.OPEN: 'INCONCLUSIVE',
           finding_types.Decision.SAME: 'dim'}


def page(shown: reports.TuneReport, minute: str) -> str:
    """Return the page.

    :param minute: time at which it is written
    """
    found = shown.findings
    effects = [effect for row in found.values
               for effect in (row.effect, row.time, *row.programs.values())]
    span = math.exp(1.1 * max([_MIN_SCALE] + [
        abs(end) for effect in effects for end in (effect.low, effect.high)
        if math.isfinite(end)]))
    head, recommended, *rest = shown.summary()
    html: str = templates.environment('hpcvirt.tune').get_template(
        'tune.html.j2').render(
            title=TITLE, marks=['PASS', 'FAIL', 'INCONCLUSIVE'],
            minute=minute, head=head, recommended=recommended, rest=rest,
            programs=list(shown.space.weights),
            objective=shown.experiment.objective,
            matters=f'{shown.experiment.matters_percent:g} %',
            span=f'{1 / span - 1:+.1%} to {span - 1:+.1%}',
            rows=[_row(shown, row, span) for row in found.values],
            interactions=[{
                'both': ' and '.join(pair.values),
                'effect': reports.percents(pair.effect),
                'drawing': _draw(pair.effect, span),
                'confounded': ', '.join(pair.confounded)}
                for pair in found.interactions],
            notes=[*shown.notes()])
    return html + '\n'


def _row(shown: reports.TuneReport, row: finding_types.ValueFinding,
         span: float) -> dict[str, Any]:
    name, effect, time, decision, trials, slow, guests, cores, gib = (
        shown.row(row))
    return {'name': name, 'effect': effect, 'time': time,
            'decision': decision, 'trials': trials, 'slow': slow,
            'guests': guests, 'cores': cores, 'gib': gib,
            'color': 'FAIL' if row.guard else _COLORS[row.decision],
            'drawing': _draw(row.effect, span),
            'programs': [{
                'name': name, 'effect': reports.percents(row.programs[name]),
                'drawing': _draw(row.programs[name], span)}
                for name in shown.space.weights if name in row.programs]}


def _draw(effect: finding_types.Effect, span: float) -> str:
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return ''
    ratio, low, high = map(math.exp, (effect.gain, effect.low, effect.high))
    return charts.interval(judgement.Interval(ratio, low, high), span, None,
                           None)
