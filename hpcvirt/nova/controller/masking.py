# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Keep secrets out of messages.

nova.conf has the passwords of databases and services, and so has the record
of each Nova cell. Some errors of the libraries repeat them.
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

#: Shorter ones are ordinary words, of which a message would lose too much.
_SHORTEST_SECRET = 4

_SECRET_NAME = re.compile(r'password|secret|token|connection|transport_url')


def masked(message: object, more: Iterable[str] = ()) -> str:
    """Return the first line of a message without secrets.

    Further lines of an error of a database are the statement.

    :param more: secrets beyond those of nova.conf
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
