# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import unittest

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt.bench.studies import catalogue as study_catalogue

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ('hpcvirt', 'tests', 'testing', 'tools', 'demo', 'doc/source',
           'doc/ext', 'doc/tools', 'contrib', 'etc', 'benchmarks', 'devstack',
           'releasenotes/notes')
SUFFIXES = ('.py', '.yaml', '.rst', '.j2', '.sh', '.json')

#: ``[Holm-1979]``, ``:cite:`Holm-1979```: a name, more words, mostly a year.
#: A class of characters such as [A-Za-z] is none.
CITATION = re.compile(
    r'(?:\[|:cite:`)((?:[A-Z][A-Za-z]+-)+(?:\d{4}|[A-Z][a-z]+))(?:\]|`)')


def texts():
    """Every text of the tree with its path, but for the bibliography."""
    paths = [*ROOT.glob('*.rst')]
    for folder in FOLDERS:
        paths += [path for path in (ROOT / folder).rglob('*')
                  if path.suffix in SUFFIXES]
    for path in paths:
        name = str(path.relative_to(ROOT))
        if name != 'hpcvirt/bibliography.py' and '_generated' not in name:
            yield name, path.read_text(encoding='utf-8', errors='replace')


class CitationTest(unittest.TestCase):
    def test_every_citation_of_the_tree_is_in_the_bibliography(self):
        cited = {(name, key) for name, text in texts()
                 for key in CITATION.findall(text)}
        self.assertLess(20, len(cited))
        for name, key in sorted(cited):
            with self.subTest(name, key=key):
                self.assertIn(f'[{key}]', bibliography.get(key).citation)

    def test_every_study_names_its_document(self):
        for study_ in study_catalogue.studies():
            self.assertEqual(study_.source, study_.document.key)
            self.assertIsNotNone(study_.document.file)

    def test_no_other_file_has_the_name_of_a_text(self):
        files = [document.file for document in bibliography.DOCUMENTS
                 if document.file]
        self.assertEqual(5, len(files))
        for name, text in texts():
            for file in files:
                self.assertNotIn(file.removesuffix('.txt'), text, name)


class BibliographyTest(unittest.TestCase):
    def test_keys_are_unique_and_can_be_cited(self):
        keys = [document.key for document in bibliography.DOCUMENTS]
        self.assertEqual(len(keys), len(set(keys)))
        for key in keys:
            self.assertEqual([key], CITATION.findall(f'see [{key}].'))
            self.assertEqual([key], CITATION.findall(f'see :cite:`{key}`.'))

    def test_every_document_can_be_found(self):
        for document in bibliography.DOCUMENTS:
            for text in (document.authors, document.title, document.venue,
                         document.year, document.found):
                self.assertTrue(text.strip(), document.key)

    def test_an_unknown_key_is_refused(self):
        self.assertRaises(exception.InvalidInput, bibliography.get,
                          'Nobody-1900')
