# SPDX-License-Identifier: Apache-2.0

"""Remove secrets from messages.

nova.conf and the records of Nova cells have the passwords of databases and
services. Some errors of the libraries repeat them.
"""

import re
import typing
from collections.abc import Iterable
from collections.abc import Iterator

import nova.conf
from oslo_config import cfg
from oslo_utils import strutils

#: The user and password of a URL.
_CREDENTIALS = re.compile(r'//[^\s\'"]*@')

#: Shorter secrets are not masked, because they may be ordinary words.
_SHORTEST_SECRET = 4

_SECRET_NAME = re.compile(r'password|secret|token|connection|transport_url')


def mask(message: object, more: Iterable[str] = ()) -> str:
    """Return the first line of a message without secrets.

    The further lines of a database error quote the statement.

    :param more: secrets that are not in nova.conf
    """
    text = _CREDENTIALS.sub('//***@', str(message).split('\n')[0])
    secrets = {*more, *_secrets()}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, '***')
    return str(strutils.mask_password(text))


def _secrets() -> Iterator[str]:
    conf: typing.Any = nova.conf.CONF
    for name in conf:
        try:
            value = conf[name]
        except (cfg.Error, ValueError):
            continue
        if not isinstance(value, cfg.ConfigOpts.GroupAttr):
            yield from _secret(name, value)
            continue
        for key in value:
            try:
                yield from _secret(key, value[key])
            except (cfg.Error, ValueError):
                continue


def _secret(name: str, value: object) -> Iterator[str]:
    if (isinstance(value, str) and _SECRET_NAME.search(name)
            and ('://' not in value or '@' in value)):
        yield value
