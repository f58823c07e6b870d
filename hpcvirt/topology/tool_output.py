# SPDX-License-Identifier: Apache-2.0

"""Read what the tools of vendors printed about devices, from a capture.

nvidia-smi and rocm-smi number GPUs, and print their addresses elsewhere. A
number without an address is not guessed: what is said of it stays unknown.
Text that is cut off or contradicts itself is refused.
"""

import re
import typing
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.model import wiring
from hpcvirt.topology import pci

#: The folder of a capture with the output of tools.
FOLDER = 'output'

#: The files in it: the lines to keep, and the command that prints them.
COMMANDS = {
    'pci': ('.', 'find sys/bus/pci/devices -type l -exec readlink {} ;'),
    'lspci': ('^[0-9a-f]+:|Express|RlxdOrd|MaxPayload|A[CT]SCtl',
              'lspci -Dvvv'),
    'nvidia-smi-gpus': (
        '.', 'nvidia-smi --query-gpu=index,pci.bus_id --format=csv,noheader'),
    'nvidia-smi-topo': ('GPU', 'nvidia-smi topo -m'),
    'nvidia-smi-nvlink': ('^GPU.[0-9]+:|Link', 'nvidia-smi nvlink --status'),
    'nvidia-smi-modules': ('^GPU.|Module.I[dD]', 'nvidia-smi -q'),
    'fmpm': ('physicalId|isActive|numGpus|partitionId', 'fmpm -l'),
    'ethtool-coalesce': ('for|Adaptive', 'ethtool -c *'),
    'ethtool-rings': ('for|settings|^RX:', 'ethtool -g *'),
    'rocm-smi-bus': ('GPU', 'rocm-smi --showbus'),
    'rocm-smi-topo': ('GPU', 'rocm-smi --showtopo'),
}

#: Returns the content of one of these files, empty if there is none.
Text = Callable[[str], str]

#: The kind of a bridge and its controls of ACS; None if unknown.
Port = tuple[wiring.PortKind | None, frozenset[str] | None]

#: Whether a function may relax the order of transfers, None without PCI
#: Express, and whether ATS is on, None without the capability.
Controls = tuple[bool | None, bool | None]



class TransferSizes(typing.NamedTuple):
    """The sizes of the transfers of a function of PCI Express, in bytes.

    :ivar payload: what it sends at once
    :ivar most_payload: the most that it could send
    :ivar read_request: what it requests at once
    """

    payload: int
    most_payload: int
    read_request: int


#: An address; lspci may leave out the domain if there is only one.
_ADDRESS = ('(?:([0-9a-fA-F]{4,8}):)?'
            '([0-9a-fA-F]{2}:[0-9a-fA-F]{2}[.][0-7])')

_PORT = re.compile(r'Express \(v[0-9]\) (?:(Root|Upstream|Downstream) Port|'
                   'PCI.* Bridge)')


def read_controls(text: Text) -> dict[str, Controls]:
    """Read the functions that lspci was allowed to describe, by address."""
    found: dict[str, Controls] = {}
    for address, block in _split_functions(text('lspci')):
        ordering = re.search('RlxdOrd([+-])', block)
        ats = re.search(r'ATSCtl:\s*Enable([+-])', block)
        if ordering:
            found[address] = (ordering[1] == '+',
                              ats[1] == '+' if ats else None)
    return found


def read_sizes(text: Text) -> dict[str, TransferSizes]:
    """Read the functions that lspci was allowed to describe, by address."""
    found = {}
    for address, block in _split_functions(text('lspci')):
        # The first is in the line DevCap, the second in the lines DevCtl.
        most = re.search(r'DevCap:\s*MaxPayload ([0-9]{1,5}) bytes', block)
        now = re.search('MaxPayload ([0-9]{1,5}) bytes, MaxReadReq '
                        '([0-9]{1,5}) bytes', block)
        if most and now:
            found[address] = TransferSizes(int(now[1]), int(most[1]),
                                           int(now[2]))
    return found


def read_moderated(text: Text) -> tuple[str, ...]:
    """List the network devices with adaptive moderation of interrupts."""
    return tuple(re.findall(
        r'^Coalesce parameters for (\S+):\nAdaptive RX: on\b',
        text('ethtool-coalesce'), re.MULTILINE))


def read_rings(text: Text) -> dict[str, int]:
    """Read the present entries of the ring for packets that arrive."""
    return {name: int(count) for name, count in re.findall(
        r'^Ring parameters for (\S+):\n(?:.*\n)??.*\n'
        r'Current hardware settings:\nRX:\s*([0-9]{1,6})$',
        text('ethtool-rings'), re.MULTILINE)}


def _split_functions(lspci: str) -> Iterator[tuple[str, str]]:
    """Yield each function's address and its lines."""
    for block in re.split(r'\n(?=\S)', lspci):
        address = re.match(f'{_ADDRESS} ', block)
        if address:
            yield _normal(*address.groups()), block


def read_bridges(text: Text) -> dict[str, Port]:
    """Read the bridges that lspci was allowed to describe, by address."""
    found: dict[str, Port] = {}
    address = ''
    for line in text('lspci').splitlines():
        if match := re.match(f'{_ADDRESS} ', line):
            address = _normal(*match.groups())
        elif match := _PORT.search(line):
            found[address] = (
                wiring.PortKind(f'{match[1].lower()} port') if match[1]
                else wiring.PortKind.BRIDGE, frozenset())
        elif 'ACSCtl:' in line and address in found:
            words = line.partition('ACSCtl:')[2].split()
            found[address] = (found[address][0], frozenset(
                name for name in wiring.ACS_CONTROLS if f'{name}+' in words))
    return found


def read_links(text: Text, where: str,
               ) -> tuple[set[str], list[wiring.DeviceLink]]:
    """Read the links between GPUs.

    :param where: the capture, for errors
    :returns: the addresses of the GPUs whose links are known, and the links
    :raises InvalidInput: if an output is cut off or contradicts itself
    """
    xgmi = text('rocm-smi-topo').partition('Link Type between')[2]
    # nvidia-smi underlines the names of columns.
    nvlink = re.sub('\x1b\\[[0-9;]{0,9}m', '', text('nvidia-smi-topo'))
    known: set[str] = set()
    links = []
    for name, table, gpus in (
            ('nvidia-smi-topo', nvlink,
             _find_gpus(text('nvidia-smi-gpus'), 'N, *')),
            ('rocm-smi-topo', xgmi.partition('\n')[2],
             _find_gpus(text('rocm-smi-bus'), r'GPU\[N\]\s*: PCI Bus: '))):
        cells = _read_table(table, f'{where}: {FOLDER}/{name}')
        known |= {gpus[row] for row, _ in cells if row in gpus}
        for (row, column), cell in cells.items():
            match = re.fullmatch('NV([1-9][0-9]{0,3})|XGMI', cell)
            if match and row in gpus and column in gpus:
                ends = gpus[row], gpus[column]
                if pci.address_key(ends[0]) < pci.address_key(ends[1]):
                    links.append(wiring.DeviceLink(
                        wiring.LinkKind.NVLINK if match[1]
                        else wiring.LinkKind.XGMI, ends,
                        int(match[1]) if match[1] else None))
    return known, links


def read_speeds(text: Text) -> dict[str, tuple[float, ...]]:
    """Read the speeds of the NVLinks of each GPU, as in an Attachment."""
    speeds: dict[str, list[float]] = {}
    gpus = _find_gpus(text('nvidia-smi-gpus'), 'N, *')
    own: list[float] = []
    for line in text('nvidia-smi-nvlink').splitlines():
        if match := re.match('GPU ([0-9]{1,4}):', line):
            own = speeds.setdefault(f'GPU{match[1]}', [])
        elif match := re.match(
                r'\s*Link [0-9]{1,4}: (?:<inactive>|([0-9]{1,5}'
                r'(?:\.[0-9]{1,5})?) GB/s)', line):
            own.append(float(match[1] or 0))
    return {gpus[name]: tuple(own) for name, own in speeds.items()
            if name in gpus}


def read_partitions(text: Text, where: str,
                    ) -> tuple[wiring.FabricPartition, ...] | None:
    """Read the partitions of NVIDIA's fabric manager.

    It names GPUs by their places on the baseboard, which are not in the order
    of addresses: nvidia-smi has both [NVIDIA-Nvswitch]. fmpm prints the names
    of each object in alphabetical order.

    :param where: the capture, for errors
    :returns: None if they are unknown, or the address of a GPU is
    :raises InvalidInput: if the output is cut off
    """
    places = {int(place): _normal(domain, rest) for domain, rest, place
              in re.findall(rf'^GPU {_ADDRESS}\s+Module I[dD]\s*: '
                            '([0-9]{1,4})$', text('nvidia-smi-modules'),
                            re.MULTILINE)}
    found = []
    gpus: list[str | None] = []
    said: dict[str, int] = {}
    for name, number in re.findall('"([a-zA-Z]+)" *: *([0-9]{1,6})',
                                   text('fmpm')):
        said[name] = int(number)
        if name == 'physicalId':
            gpus.append(places.get(int(number)))
        elif name == 'partitionId':
            if said.get('numGpus') != len(gpus) or 'isActive' not in said:
                raise exception.InvalidInput(
                    f'{where}: {FOLDER}/fmpm',
                    f'partition {number} is cut off')
            found.append(wiring.FabricPartition(
                int(number), tuple(sorted(filter(None, gpus),
                                          key=pci.address_key)),
                bool(said['isActive'])))
            if len(found[-1].devices) < len(gpus):
                return None
            gpus, said = [], {}
    if said:
        raise exception.InvalidInput(f'{where}: {FOLDER}/fmpm', 'is cut off')
    return tuple(found) or None


def _normal(domain: str | None, rest: str) -> str:
    """Write an address as the kernel does."""
    return f'{int(domain or "0", 16):04x}:{rest.lower()}'


def _find_gpus(text: str, pattern: str) -> dict[str, str]:
    """Find the addresses of GPUs after a pattern with their number N."""
    return {f'GPU{int(number)}': _normal(domain, rest)
            for number, domain, rest in re.findall(
                pattern.replace('N', '([0-9]{1,4})') + _ADDRESS, text)}


def _read_table(text: str, where: str) -> dict[tuple[str, str], str]:
    """Read a table with a row and a column for each GPU; others are left out.

    :returns: (row, column) -> cell
    :raises InvalidInput: if it is not complete, or not symmetric
    """
    columns: list[str] = []
    rows: dict[str, list[str]] = {}
    for words in map(str.split, text.splitlines()):
        if not words or not re.fullmatch('GPU[0-9]{1,4}', words[0]):
            continue
        if columns:
            rows.setdefault(words[0], []).extend(words[1:len(columns) + 1])
        else:
            columns = words[:words.index('CPU')] if 'CPU' in words else words
    found: dict[tuple[str, str], str] = {}
    for row, cells in rows.items():
        for column, cell in zip(columns, cells, strict=False):
            if column in rows:
                found[row, column] = cell
    if any(len(cells) != len(columns) for cells in rows.values()) or any(
            name.startswith('GPU') and name not in rows for name in columns):
        raise exception.InvalidInput(
            where, 'is cut off: each GPU must have a row and a column')
    for (row, column), cell in found.items():
        if found.get((column, row)) != cell:
            raise exception.InvalidInput(
                where, f'{row} to {column} is not {column} to {row}')
    return found
