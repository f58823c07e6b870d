# SPDX-License-Identifier: Apache-2.0

"""Pages of HTML, as a reader of their elements sees them."""

import html.parser
import xml.etree.ElementTree

#: Elements without an end tag.
_EMPTY = ('meta', 'br', 'wbr')


class Reader(html.parser.HTMLParser):
    """Makes a tree of a page; refuses one with elements that are open."""

    def __init__(self, text):
        super().__init__()
        self.root = self._here = xml.etree.ElementTree.Element('page')
        self._open = [self.root]
        self.feed(text)
        assert self._open == [self.root], self._open

    def handle_starttag(self, tag, attrs):
        element = xml.etree.ElementTree.SubElement(
            self._open[-1], tag, {name: value or '' for name, value in attrs})
        if tag not in _EMPTY:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        xml.etree.ElementTree.SubElement(self._open[-1], tag, dict(attrs))

    def handle_endtag(self, tag):
        assert self._open.pop().tag == tag, tag

    def handle_data(self, data):
        here = self._open[-1]
        if len(here):
            here[-1].tail = (here[-1].tail or '') + data
        else:
            here.text = (here.text or '') + data


def words(element):
    """Return the text of an element, with single spaces."""
    return ' '.join(''.join(element.itertext()).split())
