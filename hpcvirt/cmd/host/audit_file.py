# SPDX-License-Identifier: Apache-2.0

"""Read the findings that ``hpcvirt host audit --format json`` printed."""

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.audit import finding

_SCHEMA_VERSION = 1
_MAX_BYTES = 16 * 1024 * 1024


def read(path: str) -> tuple[finding.Finding, ...]:
    """Read the findings of an audit.

    :raises InvalidInput: if the file cannot be read, or is no audit
    """
    where = input_file.name(path)
    plain = serialization.json_value(
        input_file.content(path, _MAX_BYTES), where)
    serialization.require_version(plain, _SCHEMA_VERSION, where)
    found = plain.get('findings') if isinstance(plain, dict) else None
    if not isinstance(found, list) or 'checked' not in plain:
        raise exception.InvalidInput(
            where, 'is not the output of "hpcvirt host audit --format json"')
    return tuple(serialization.load(
        finding.Finding, item, f'{where}: finding {number}')
        for number, item in enumerate(found, 1))
