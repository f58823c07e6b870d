# SPDX-License-Identifier: Apache-2.0

"""Text of unknown origin, made fit for a terminal.

The names of flavors and hosts and the output of benchmarks may hold control
characters (C0, C1, escape sequences) and characters that reverse the order of
the text. A terminal would obey them. Errors of libraries may quote a URL with
its password.
"""

import re
from collections.abc import Iterable

#: The lengths are limited, so that long text takes no longer than its length.
_PASSWORDS = (
    (re.compile(r'(://[^\s:/@]{0,99}):[^\s]{0,999}@'), r'\1:***@'),
    (re.compile(r'([?&;][^\s?&;=]{0,99}(?:passw(?:or)?d|pwd|secret|token))='
                r'[^\s?&;"\']*', re.IGNORECASE), r'\1=***'),
)


def escape(text: str, keep: str = '') -> str:
    """Write characters that do not print by their numbers, as JSON does.

    :param keep: characters that stay as they are
    """
    if text.translate(dict.fromkeys(map(ord, keep))).isprintable():
        return text
    return ''.join(c if c.isprintable() or c in keep else _escape(c)
                   for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


def lines(texts: Iterable[str]) -> str:
    """Write each text as one line, whatever is in it."""
    return ''.join(f'{escape(text)}\n' for text in texts)


def one_line(text: str) -> str:
    """Fold text into one printable line without the passwords of URLs."""
    return escape(hide_passwords(' '.join(text.split())))


def hide_passwords(text: str) -> str:
    """Hide the passwords of the URLs in a text."""
    for pattern, mask in _PASSWORDS:
        text = pattern.sub(mask, text)
    return text


def hide_user(address: str) -> str:
    """Leave out the user of an address that may be no URL: ``***@host``."""
    return re.sub('^.*@', '***@', address, flags=re.DOTALL)
