# SPDX-License-Identifier: Apache-2.0

"""The base of the directives that write reStructuredText from the code."""

from collections.abc import Iterable
from typing import ClassVar

from docutils import nodes
from docutils import statemachine
from docutils.parsers import rst


class WrittenDirective(rst.Directive):
    """A directive that is replaced by text that it writes.

    :cvar has_sections: whether the text has headings of its own
    """

    has_sections: ClassVar[bool] = False

    def write(self) -> Iterable[str]:
        """Return the lines of the text."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Have the text parsed."""
        lines = statemachine.StringList(list(self.write()), source=self.name)
        parent = nodes.Element()
        parent.document = self.state.document
        self.state.nested_parse(lines, self.content_offset, parent,
                                match_titles=self.has_sections)
        return parent.children
