# SPDX-License-Identifier: Apache-2.0

"""The directive ``audit-rules``: a table of the rules of ``host audit``."""

from collections.abc import Iterable

import written
from sphinx import application

from hpcvirt.audit import audit
from hpcvirt.audit import costs


class AuditRules(written.WrittenDirective):
    """Write a table of ``hpcvirt.audit.audit.RULES``."""

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the rules."""
        lines = ['.. list-table::', '   :header-rows: 1',
                 '   :widths: 16 10 30 26 18', '', '   * - Code',
                 '     - Severity', '     - What is checked', '     - Why',
                 '     - Cost']
        for rule in audit.RULES:
            cited = ' '.join(f':cite:`{key}`' for key in rule.sources)
            lines += [f'   * - ``{rule.code}``', f'     - {rule.severity}',
                      f'     - {rule.checks}',
                      f'     - {rule.why[0].upper()}{rule.why[1:]}. {cited}',
                      f'     - {_cost(rule.code)}']
        return lines


def _cost(code: str) -> str:
    cost = costs.BY_RULE.get(code)
    return f'{cost.words} :cite:`{cost.source}`' if cost else '--'


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('audit-rules', AuditRules)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
