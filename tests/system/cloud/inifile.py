# SPDX-License-Identifier: Apache-2.0

"""Write configuration files as oslo.config reads them."""

import pathlib
from collections.abc import Mapping
from collections.abc import Sequence

#: A sequence is an option with several lines.
Value = str | int | bool | Sequence[str]
Sections = Mapping[str, Mapping[str, Value]]


def merge(*parts: Sections) -> dict[str, dict[str, Value]]:
    """Merge sections; the value of the last part wins."""
    merged: dict[str, dict[str, Value]] = {}
    for part in parts:
        for section, options in part.items():
            merged.setdefault(section, {}).update(options)
    return merged


def write(path: pathlib.Path, sections: Sections) -> None:
    """Write a file that only root can read, since it has passwords."""
    lines = []
    for section, options in sections.items():
        lines.append(f'[{section}]')
        for name, value in options.items():
            if isinstance(value, (str, int)):
                lines.append(f'{name} = {_text(value)}')
            else:
                lines += [f'{name} = {item}' for item in value]
        lines.append('')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text('\n'.join(lines))


def _text(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
