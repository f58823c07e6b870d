# SPDX-License-Identifier: Apache-2.0

"""Read what hosts have exported, from files or from Prometheus.

A host that is compromised may export anything. The host that a value belongs
to is therefore taken only from the name of the file, or from the label
``instance``, which Prometheus sets. Unknown names and values that are not
numbers are left out.
"""

import contextlib
import http.client
import math
import pathlib
import re
import urllib.parse
import urllib.request
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.health import signature

SCORE = 'hpcvirt_host_score'
TIME = 'hpcvirt_host_sample_timestamp_seconds'

#: A host whose last sample is older is not known.
FRESH_S = 300.0

_MAX_OF_HOST = 1 << 20
_MAX_OF_FLEET = 1 << 26
_TIMEOUT_S = 30.0

_LINE = re.compile(
    r'(hpcvirt_host_\w{1,64})(?:\{([^{}]{0,400})\})?[ \t]+(\S{1,32})'
    r'(?:[ \t]+-?\d{1,20})?[ \t]*')  # a timestamp, which is not used
_LABEL = re.compile(r'(\w{1,32})="([^"]{0,64})"')
_UNIT = re.compile(r'[\w.:@-]{0,64}', re.ASCII)
_NAMES = frozenset(sign.name for sign in signature.SIGNS)

#: A host, the name of a metric, its labels and its value.
_Row = tuple[str, str, Mapping[str, str], str]


def read_folder(path: str, hosts: Collection[str], now: float,
                complain: Callable[[str], None]) -> signature.Readings:
    """Read HOST.prom of each host in a folder.

    :param complain: is told of a file that cannot be read; that host is not
        known
    """
    rows: list[_Row] = []
    for host in hosts:
        try:
            text = input_file.content(pathlib.Path(path, f'{host}.prom'),
                                      _MAX_OF_HOST)
        except exception.InvalidInput as exc:
            complain(str(exc))
            continue
        rows += [(host, match[1], dict(_LABEL.findall(match[2] or '')),
                  match[3]) for match in map(
                      _LINE.fullmatch,
                      text.decode('utf-8', 'replace').splitlines()) if match]
    return _make_readings(rows, hosts, now)


def read_prometheus(url: str, hosts: Collection[str],
                    now: float) -> signature.Readings:
    """Ask Prometheus for all hosts.

    :param url: without the path of the API
    :raises Unreachable: if it does not answer, or not as its API does
    """
    query = urllib.parse.urlencode(
        {'query': f'{{__name__=~"{SCORE}|{TIME}"}}'})
    address = f'{url.rstrip("/")}/api/v1/query?{query}'
    try:
        # The argument of the command was checked: it is http or https.
        with urllib.request.urlopen(  # noqa: S310
                address, timeout=_TIMEOUT_S) as answer:
            data = answer.read(_MAX_OF_FLEET + 1)
        if len(data) > _MAX_OF_FLEET:
            raise exception.Unreachable(f'{url}: the answer is too long')
        plain = serialization.json_value(data, url)
        rows = [_read_row(each) for each in plain['data']['result']]
    except (OSError, http.client.HTTPException, LookupError, TypeError,
            ValueError, AttributeError, exception.InvalidInput) as exc:
        raise exception.Unreachable(
            f'{url}: Prometheus does not answer ({exc})') from exc
    return _make_readings(rows, hosts, now)


def _read_row(row: Mapping[str, Mapping[str, str]]) -> _Row:
    """Read an element of a vector; see the HTTP API of Prometheus."""
    labels = {str(key): str(value) for key, value in row['metric'].items()}
    host = re.sub(r':\d+$', '', labels.get('instance', ''))
    _, value = row['value']
    return host, labels.get('__name__', ''), labels, str(value)


def _make_readings(rows: Iterable[_Row], hosts: Collection[str],
                   now: float) -> signature.Readings:
    found: dict[str, dict[str, signature.SignScore]] = {}
    fresh = set()
    for host, name, labels, word in rows:
        value = math.nan
        with contextlib.suppress(ValueError):
            value = float(word)
        if host not in hosts or not math.isfinite(value):
            continue
        sign, unit = labels.get('sign', ''), labels.get('unit', '')
        if name == TIME and abs(now - value) <= FRESH_S:
            fresh.add(host)
        elif (name == SCORE and value >= 0 and sign in _NAMES
              and _UNIT.fullmatch(unit)):
            scores = found.setdefault(host, {})
            score = signature.SignScore(value, unit)
            # After a change of the unit there may be two.
            scores[sign] = max(score, scores.get(sign, score))
    return {host: found.get(host, {}) for host in fresh}
