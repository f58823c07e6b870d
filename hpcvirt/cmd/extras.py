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

"""Libraries that only some verbs need, and that may be missing."""

import contextlib
import warnings
from collections.abc import Iterator

from hpcvirt import exception


@contextlib.contextmanager
def nova() -> Iterator[None]:
    """Import modules that need Nova.

    :raises NotInstalled: if it is missing, naming where it is
    """
    try:
        # The libraries of Nova warn of what concerns its developers.
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    except ImportError as exc:
        raise exception.NotInstalled(
            f'{exc.name} is not installed; run the command on a controller, '
            'with the Python of Nova, or name the hosts with --topology'
        ) from exc


@contextlib.contextmanager
def named(extra: str) -> Iterator[None]:
    """Import modules that need a library of an extra, such as ``bench``.

    :raises NotInstalled: if it is missing, naming what to install
    """
    try:
        yield
    except ImportError as exc:
        raise exception.NotInstalled(
            f'{exc.name} is not installed; pip install hpcvirt[{extra}]'
        ) from exc


def bench() -> contextlib.AbstractContextManager[None]:
    """Import modules that need a library of ``hpcvirt[bench]``."""
    return named('bench')
