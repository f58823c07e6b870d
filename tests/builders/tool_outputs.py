# SPDX-License-Identifier: Apache-2.0

"""What the tools of vendors print about devices."""

import pathlib

TOOLS = pathlib.Path(__file__).parents[1] / 'data' / 'tools'


def published(name: str) -> str:
    """Read an output that somebody published."""
    return (TOOLS / f'{name}.txt').read_text()


def gpus(*buses: int) -> str:
    """Write the addresses of GPUs as nvidia-smi does."""
    return ''.join(f'{number}, 00000000:{bus:02X}:00.0\n'
                   for number, bus in enumerate(buses))
