# SPDX-License-Identifier: Apache-2.0

import unittest
import unittest.mock

from hpcvirt import exception
from hpcvirt.topology import document

DOCTYPE = '<!DOCTYPE topology SYSTEM "hwloc2.dtd">'


class XmlTest(unittest.TestCase):
    def refused(self, xml: str | bytes, pattern: str) -> None:
        data = xml.encode() if isinstance(xml, str) else xml
        with self.assertRaisesRegex(exception.InvalidInput,
                                    f'a.xml: .*{pattern}'):
            document.xml_root(data, 'a.xml')

    def test_the_doctype_of_hwloc_is_accepted_and_not_opened(self) -> None:
        for name in ('hwloc2.dtd', 'file:///dev/zero', '/dev/zero'):
            root = document.xml_root(
                f'<!DOCTYPE topology SYSTEM "{name}"><topology/>'.encode(),
                'a.xml')
            self.assertEqual('topology', root.tag)

    def test_other_doctypes_are_refused(self) -> None:
        for doctype in ('<!DOCTYPE capabilities SYSTEM "x.dtd">',
                        '<!DOCTYPE topology []>',
                        '<!DOCTYPE topology [<!ELEMENT topology EMPTY>]>',
                        '<!DOCTYPE topology SYSTEM "hwloc2.dtd" [ ]>',
                        '<!DOCTYPE topology [<!ATTLIST a b CDATA "">]>'):
            self.refused(doctype + '<topology/>', 'document type definition')

    def test_entities_are_refused_and_never_expanded(self) -> None:
        for declaration in ('<!ENTITY a "aaaa">',
                            '<!ENTITY a SYSTEM "file:///etc/passwd">',
                            '<!ENTITY % a SYSTEM "http://127.0.0.1/a">'):
            self.refused(f'<!DOCTYPE topology [{declaration}]>'
                         '<topology>&a;</topology>', 'refused')

    def test_undeclared_entities_are_refused(self) -> None:
        self.refused(f'{DOCTYPE}<topology>&a;</topology>', 'well-formed')

    def test_xml_that_is_not_well_formed_is_refused(self) -> None:
        for xml in ('', '<', '<a', '<a>', '<a></b>', '<a/><b/>', 'x<a/>',
                    '<a b="1" b="2"/>', '<a>\0</a>',
                    '<?xml version="1.0" encoding="no-such"?><a/>',
                    '<?xml version="1.0" encoding="utf-7"?><a/>',
                    '<?xml version="1.0" encoding="base64"?><a/>',
                    b'<a>\xff\xfe</a>', b'\x89PNG\r\n\x1a\n'):
            self.refused(xml, 'not well-formed XML')

    def test_encodings_that_xml_knows_are_read(self) -> None:
        for encoding in ('utf-8', 'utf-16', 'iso-8859-1'):
            xml = f'<?xml version="1.0" encoding="{encoding}"?><a b="\xe9"/>'
            root = document.xml_root(xml.encode(encoding), 'a.xml')
            self.assertEqual('\xe9', root.get('b'))

    def test_deep_nesting_is_refused(self) -> None:
        self.refused('<a>' * 100_000, 'nested deeper than 64')

    def test_too_many_elements_are_refused(self) -> None:
        with unittest.mock.patch.object(document, 'MAX_ELEMENTS', 2500):
            document.xml_root(b'<a>' + b'<b/>' * 2499 + b'</a>', 'a.xml')
            self.refused('<a>' + '<b/>' * 2500 + '</a>',
                         'more than 2500 elements')

    def test_periodic_a_quarter_of_a_million_elements_are_refused(
            self) -> None:
        self.refused('<a>' + '<b/>' * document.MAX_ELEMENTS + '</a>',
                     'more than 250000 elements')


class WholeTest(unittest.TestCase):
    def test_numbers_are_read(self) -> None:
        for text, number in (('0', 0), (' 12\n', 12), ('007', 7), ('-1', -1)):
            self.assertEqual(
                number, document.whole(text, 'a', 'b', 12, least=-1))

    def test_anything_else_is_refused(self) -> None:
        for text in (None, '', ' ', 'x', '1.5', '1e3', '0x1', '1 2', '--1',
                     '13', '-2', '9' * 9999, '\u0661', '+1', '1_0'):
            with self.assertRaisesRegex(exception.InvalidInput, '^a: b is'):
                document.whole(text, 'a', 'b', 12, least=-1)


class HexadecimalTest(unittest.TestCase):
    def test_the_prefix_is_optional(self) -> None:
        for text in ('0x8086', '8086', ' 0X8086\n'):
            self.assertEqual(0x8086, document.hexadecimal(text, 'a', 'b', 4))

    def test_anything_else_is_refused(self) -> None:
        for text in ('', '0x', 'xyz', '12345', '-1', '1_0', '1 2'):
            with self.assertRaisesRegex(exception.InvalidInput, '^a: b is'):
                document.hexadecimal(text, 'a', 'b', 4)
