# SPDX-License-Identifier: Apache-2.0

"""Text of a document in which ``{host}`` stands for the name of a host.

A document for a class of hosts names the target ``ssh://root@{host}``, for
example, which is ``ssh://root@node7`` for the host ``node7``.
"""

from hpcvirt import serialization

HOST = '{host}'


def check(example: str) -> serialization.Check:
    """Accept text in which nothing else is in braces.

    :param example: such a text, for errors
    """
    def read(value: object) -> str:
        if not isinstance(value, str) or not value or not set(
                '{}').isdisjoint(value.replace(HOST, '')):
            raise serialization.make_error(f'text such as {example}', value)
        return value
    return read


def fill(text: str, host: str) -> str:
    """Return the text for a host."""
    return text.replace(HOST, host)
