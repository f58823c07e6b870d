# SPDX-License-Identifier: Apache-2.0

"""Write the findings of an experiment as one self-contained HTML page."""

import math

from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import charts
from hpcvirt.page import templates
from hpcvirt.tune import findings as finding_types
from hpcvirt.tune import report as reports

TITLE = 'What pays on these hosts'

#: The drawings cover at least this gain and loss, as logarithms.
_MIN_SCALE = 0.02


def page(shown: reports.TuneReport, minute: str) -> str:
    """Return the page.

    :param minute: time at which it is written
    """
    span = math.exp(1.1 * max([_MIN_SCALE] + [
        abs(end) for row in shown.findings.values
        for effect in (row.effect, row.time, *row.programs.values())
        for end in (effect.low, effect.high)]))

    def draw(effect: finding_types.Effect) -> str:
        return charts.interval(judgement.Interval(*map(
            math.exp, (effect.gain, effect.low, effect.high))), span, None,
            None)
    html: str = templates.environment('hpcvirt.tune').get_template(
        'tune.html.j2').render(
            title=TITLE, marks=['PASS', 'FAIL', 'INCONCLUSIVE'],
            minute=minute, shown=shown, summary=[*shown.summary()],
            notes=[*shown.notes()], draw=draw, percents=reports.percents,
            span=f'{1 / span - 1:+.1%} to {span - 1:+.1%}')
    return html + '\n'
