# SPDX-License-Identifier: Apache-2.0

"""Recognize the output of other tools that users give as a topology.

Such text is for people: it lacks much of what a topology needs, and changes
between releases and languages. It is named, so that the user knows what to
give instead.
"""

import re

#: As much of a file as is looked at. A prompt may precede the output.
_BYTES = 16 * 1024

#: Colors and underlines, as nvidia-smi writes them.
_ESCAPES = re.compile(r'\x1b\[[\d;]{0,9}m')

#: The tool, and what is at the beginning of a line of its output only.
_TOOLS = tuple((name, re.compile(pattern)) for name, pattern in (
    ('numactl -H', r'available: \d+ nodes? \(|node \d+ cpus:'),
    ('numactl --show', 'physcpubind:'),
    ('numastat', r'numa_hit\s+\d|Per-node .*numastat|Per-node .*memory usage'),
    ('lscpu --parse', '# The following is the parsable format'),
    ('lscpu --extended', r'CPU +(?:NODE|SOCKET|CORE)\b'),
    ('lscpu --json', r'\s*\{?\s*"lscpu"\s*:'),
    ('nvidia-smi topo -m',
     (r'\s*GPU0\b.*(?:CPU|NUMA) Affinity'
      r'|\s*SYS +=.*PCIe')),
    ('nvidia-smi', r'(?:\| )?NVIDIA-SMI \d|=+NVSMI LOG=+|GPU 0: .*UUID: '),
    ('rocm-smi', '=+ ?ROCm System Management Interface'),
    ('lspci', r'(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z]'),
    ('lstopo --of synthetic',
     (r'(?:\[?(?:NUMANode|MemCache)|Package|Socket'
      r'|Group|Die)(?:\([^)]*\))?:\d')),
    ('likwid-topology', r'Hardware Thread Topology|HWThread\s+Thread\s+Core'),
    ('dmidecode', r'# dmidecode \d'),
    ('virsh nodeinfo', r'NUMA cell\(s\): +\d'),
    ('lscpu', r'Architecture: +\w|CPU\(s\): +\d|NUMA node\d+ CPU\(s\): '),
    ('lsmem', r'RANGE +SIZE +STATE'),
    ('cat /proc/cpuinfo', r'processor\s*: 0\b'),
    ('cat /proc/meminfo', r'MemTotal: +\d'),
    # Drawn in text, each line begins with a line of a box.
    ('lstopo', r'Machine (?:\(|L#|P#)|[\s│|]*Machine \(|HostBridge L#'),
))


def find_tool(data: bytes) -> str | None:
    """Return the command whose output a file is, None if it is another.

    :param data: the content of the file
    """
    head = data[:_BYTES]
    encoding = ('utf-16' if head.startswith((b'\xff\xfe', b'\xfe\xff'))
                else 'utf-8-sig')
    text = _ESCAPES.sub('', head.decode(encoding, 'replace'))
    # Each pattern has alternatives, all of which begin a line.
    for name, pattern in _TOOLS:
        for line in text.splitlines():
            if pattern.match(line):
                return name
    return None


def explain(tool: str) -> str:
    """Say what a file is, and how to get a topology instead."""
    form = ('its form for people' if tool.startswith('lstopo')
            else 'which is no topology')
    return (f'is the output of {tool}, {form}: on that host, run "lstopo --of '
            'xml > FILE" or "virsh capabilities > FILE", and give this file '
            '(page user/read-topology, about "hpcvirt host show")')
