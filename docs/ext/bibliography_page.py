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

"""The directive ``bibliography``: the documents of hpcvirt as citations.

::

    .. bibliography::

Each document of ``hpcvirt.bibliography`` becomes a citation, which any page
links to with ``[KEY]_``. Sphinx warns of a key that does not exist and of a
document that no page cites.
"""

from collections.abc import Iterator

from docutils import nodes
from docutils import statemachine
from docutils.parsers import rst
from sphinx import application

from hpcvirt import bibliography


class Bibliography(rst.Directive):
    """Turn the bibliography into a list of citations."""

    def run(self) -> list[nodes.Node]:
        """Write reStructuredText for the documents and have it parsed."""
        lines = [line for document in bibliography.DOCUMENTS
                 for line in citation(document)]
        parent = nodes.Element()
        parent.document = self.state.document
        self.state.nested_parse(
            statemachine.StringList(lines, source='bibliography'),
            self.content_offset, parent)
        return parent.children


def citation(document: bibliography.Document) -> Iterator[str]:
    """Yield the lines of one citation."""
    yield (f'.. [{document.key}] {document.authors}: *{document.title}*. '
           f'{document.venue}. Year: {document.year}. '
           f'Available from: {document.found}.')
    if document.file is not None:
        yield f'   Text that the figures were taken from: ``{document.file}``.'
    yield ''


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('bibliography', Bibliography)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
