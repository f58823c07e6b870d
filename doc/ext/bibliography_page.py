# SPDX-License-Identifier: Apache-2.0

"""The directive ``bibliography`` and the role ``cite``.

::

    .. bibliography::

    A guest per socket is usually best :cite:`LBNL-Partitioning`.

The directive turns each document of ``hpcvirt.bibliography`` into a citation,
and the role links to one from any page. Sphinx warns of a key that does not
exist and of a document that no page cites. The role exists because doc8,
which reads one page at a time, rejects ``[KEY]_``.
"""

from collections.abc import Iterable
from collections.abc import Iterator

import written
from docutils import nodes
from sphinx import application
from sphinx.util import docutils as sphinx_docutils

from hpcvirt import bibliography


class Bibliography(written.WrittenDirective):
    """Turn the bibliography into a list of citations."""

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the documents."""
        lines: list[str] = []
        for document in bibliography.DOCUMENTS:
            lines += citation(document)
        return lines


def citation(document: bibliography.Publication) -> Iterator[str]:
    """Yield the lines of one citation."""
    yield (f'.. [{document.key}] {document.authors}: *{document.title}*. '
           f'{document.venue}. Year: {document.year}. '
           f'Available from: {document.found}.')
    if document.file is not None:
        yield f'   Text that the figures were taken from: ``{document.file}``.'
    yield ''


class Cite(sphinx_docutils.SphinxRole):
    """Link to a document by its key."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Make the node that ``[KEY]_`` makes, which Sphinx then resolves."""
        reference = nodes.citation_reference(self.rawtext, self.text)
        self.set_source_info(reference)
        return [reference], []


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive and the role."""
    app.add_directive('bibliography', Bibliography)
    app.add_role('cite', Cite())
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
