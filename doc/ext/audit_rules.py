# SPDX-License-Identifier: Apache-2.0

"""The directive ``audit-rules``: a table of the rules of ``host audit``."""

from docutils import nodes
from docutils import statemachine
from docutils.parsers import rst
from sphinx import application

from hpcvirt.audit import audit
from hpcvirt.audit import costs


class AuditRules(rst.Directive):
    """Write a table of ``hpcvirt.audit.audit.RULES``."""

    def run(self) -> list[nodes.Node]:
        """Write reStructuredText for the rules and have it parsed."""
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
        parent = nodes.Element()
        parent.document = self.state.document
        self.state.nested_parse(
            statemachine.StringList(lines, source='audit-rules'),
            self.content_offset, parent)
        return parent.children


def _cost(code: str) -> str:
    cost = costs.BY_RULE.get(code)
    return f'{cost.words} :cite:`{cost.source}`' if cost else '--'


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('audit-rules', AuditRules)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
