# SPDX-License-Identifier: Apache-2.0

"""Read a YAML or JSON file that an operator wrote."""

from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization


def read(path: str, most_bytes: int) -> Any:
    """Read the values of a file; every JSON file is a YAML file too.

    :param path: a file, or ``-`` for standard input
    :param most_bytes: the largest file that is accepted
    :raises InvalidInput: if it cannot be read or is not YAML
    """
    data = input_file.content(path, most_bytes)
    path = input_file.name(path)
    if data.lstrip()[:1] in (b'{', b'['):
        # Much faster than YAML, and the errors are easier to understand.
        return serialization.json_value(data, path)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise exception.InvalidInput(
            path, f'is not UTF-8 (byte {exc.start})') from exc
    # YAML takes a while to load.
    from hpcvirt import yaml_document
    return yaml_document.value(text, path)
