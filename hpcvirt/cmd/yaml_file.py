# SPDX-License-Identifier: Apache-2.0

"""Read a YAML or JSON file of an operator."""

from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization


def read(path: str, most_bytes: int) -> Any:
    """Read the document of a YAML or JSON file.

    :param path: a file, or ``-`` for standard input
    :param most_bytes: size limit of the file
    :raises InvalidInput: if it cannot be read or parsed
    """
    data = input_file.content(path, most_bytes)
    path = input_file.name(path)
    if data.lstrip()[:1] in (b'{', b'['):
        # The JSON parser is much faster, and its errors are clearer.
        return serialization.json_value(data, path)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise exception.InvalidInput(
            path, f'is not UTF-8 (byte {exc.start})') from exc
    # YAML takes a while to load.
    from hpcvirt import yaml_document
    return yaml_document.value(text, path)
