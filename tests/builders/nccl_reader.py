# SPDX-License-Identifier: Apache-2.0

"""Read an NCCL topology file exactly as strictly as NCCL.

NCCL has its own reader of XML, which takes less than XML: no declaration, no
text, no tabs, one space before each attribute, and at most 254 characters in a
name or a value. It follows src/graph/xml.cc, xml.h and topo.h of NCCL 2.28
step by step. RCCL has the same reader, but another version of the format; it
accepts the 57 models in tools/topo_expl of ROCm/rccl (October 2024).
"""

import dataclasses

MAX_STR_LEN = 255
MAX_ATTR_COUNT = 16
MAX_SUBS = 640
MAX_NODES = 256

#: The elements that each element may have; others are ignored.
HANDLERS = {
    None: ('system',), 'system': ('cpu',), 'cpu': ('pci', 'nic'),
    'pci': ('pci', 'gpu', 'nic', 'pcilink'), 'gpu': ('nvlink', 'c2c'),
    'nic': ('net',), 'net': (), 'nvlink': (), 'c2c': (), 'pcilink': ()}

#: The bandwidth of a lane in 100 Mb/s by the beginning of link_speed.
SPEEDS = {'2.5 GT/s': 15, '5 GT/s': 30, '8 GT/s': 60, '16 GT/s': 120,
          '32 GT/s': 240, '2.5 GT/s PCIe': 15, '5.0 GT/s PCIe': 30,
          '8.0 GT/s PCIe': 60, '16.0 GT/s PCIe': 120, '32.0 GT/s PCIe': 240,
          '64.0 GT/s PCIe': 480}
DEFAULT_SPEED = 60
CLASSES = ('0x060400', '0x080100', '0x068000', '0x068001', '0x03', '0x02')


class Refused(Exception):
    """NCCL would print a warning and fail."""


@dataclasses.dataclass
class Node:
    name: str
    attributes: dict[str, str]
    inside: list['Node'] = dataclasses.field(default_factory=list)

    def all(self, name: str) -> list['Node']:
        return [each for each in self.inside if each.name == name]


class _Reader:
    def __init__(self, text: str, version: int) -> None:
        self.text = text
        self.version = version
        self.at = 0
        self.nodes = 0

    def char(self) -> str:
        if self.at == len(self.text):
            raise Refused('unexpected EOF')
        self.at += 1
        return self.text[self.at - 1]

    def value(self) -> tuple[str, str]:
        quote = self.char()
        if quote not in '"\'':
            raise Refused('expected (double) quote')
        found = ''
        while (char := self.char()) != quote:
            found += char
            if len(found) >= MAX_STR_LEN - 1:
                raise Refused('value too long')
        return found, self.char()

    def token(self, with_value: bool) -> tuple[str, str | None, str]:
        found = ''
        while True:
            char = self.char()
            if char == '=':
                if not with_value:
                    raise Refused(f'unexpected value with name {found}')
                return found, *self.value()
            if len(found) == MAX_STR_LEN - 1:
                raise Refused('name too long')
            if char in ' >/\n\r':
                return found, None, char
            found += char

    def node(self) -> tuple[str, Node | str | None]:
        """Read a tag: its type, and a node or the name that it closes."""
        char = ' '
        while char in ' \n\r':
            if self.at == len(self.text):
                return 'none', None
            char = self.char()
        if char != '<':
            raise Refused(f"expecting '<', got {char!r}")
        name, _, char = self.token(with_value=False)
        if name.startswith('!--'):
            tail = (name[3:] + char)[-3:]
            while not tail.endswith('-->'):
                tail = (tail + self.char())[-3:]
            return self.node()
        if not name and char == '/':
            name, _, char = self.token(with_value=False)
            if char != '>':
                raise Refused(f'unexpected trailing {char!r} in {name}')
            return 'close', name
        found = Node(name, {})
        while char == ' ':
            key, value, char = self.token(with_value=True)
            if value is not None and len(found.attributes) < MAX_ATTR_COUNT:
                found.attributes.setdefault(key, value)
        kind = 'open'
        if char == '/':
            kind = 'single'
            _, _, char = self.token(with_value=False)
        if char != '>':
            raise Refused(f"expected '>', got {char!r}")
        return kind, found

    def inside(self, head: Node | None, kind: str,
               handlers: tuple[str, ...]) -> list[Node]:
        found: list[Node] = []
        while kind != 'single':
            if self.nodes == MAX_NODES:
                raise Refused(f'more than {MAX_NODES} nodes')
            inner, node = self.node()
            if inner == 'none':
                if head is not None:
                    raise Refused(f'unterminated {head.name}')
                break
            if inner == 'close':
                if head is None or node != head.name:
                    raise Refused(f'mismatch: {node}')
                break
            assert isinstance(node, Node)
            if node.name in handlers:
                if len(found) == MAX_SUBS:
                    raise Refused(f'more than {MAX_SUBS} subnodes')
                self.nodes += 1
                if node.name == 'system' and int(
                        node.attributes['version'], 0) != self.version:
                    raise Refused('wrong version')
                node.inside = self.inside(node, inner, HANDLERS[node.name])
                found.append(node)
            else:
                self.inside(node, inner, ())
        return found


def read(text: str, version: int = 1) -> Node:
    """Read a file; what NCCL needs later is checked as well.

    :param version: 1 for NCCL, 2 for RCCL
    :returns: the element ``system``
    :raises Refused: where NCCL refuses it
    """
    found = _Reader(text, version).inside(None, 'open', HANDLERS[None])
    if len(found) != 1:
        raise Refused('no topology')
    for cpu in found[0].all('cpu'):
        int(cpu.attributes['numaid'], 0)
        for group in filter(None, cpu.attributes.get('affinity', '').split(
                ',')):
            if not 1 <= len(group) <= 8 or int(group, 16) < 0:
                raise Refused('affinity')
        for pci in cpu.all('pci'):
            _check(pci)
    return found[0]


def _check(pci: Node) -> None:
    """Check a device, and a switch, which NCCL does not find in the sysfs."""
    if not pci.attributes['busid']:
        raise Refused('busid')
    if pci.all('pci') and 'class' not in pci.attributes:
        raise Refused('a switch without a class')
    for each in pci.all('pci'):
        _check(each)


def bandwidth(pci: Node) -> float:
    """Compute the GB/s of a link as NCCL does."""
    speed = next((value for key, value in SPEEDS.items()
                  if pci.attributes.get('link_speed', '').startswith(key)),
                 DEFAULT_SPEED)
    width = int(pci.attributes.get('link_width') or '0') or 16
    return width * speed / 80
