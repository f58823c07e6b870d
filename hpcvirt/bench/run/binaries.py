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

"""Give both arms the same binaries: another compiler is another benchmark."""

import hashlib
import posixpath
import re
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import private_directory
from hpcvirt.bench.run import run_spec

#: "make: *** [Makefile:36: cg] Error 2", which does not name the cause.
_MAKE = re.compile(r'make(\[\d+\])?: ')
BUILD_LIMIT_S = 1800.0
COPY_LIMIT_S = 600.0

#: Runs a program in the directory $1.
_BUILD = private_directory.CREATE + """
create "$1"
shift
exec "$@"
"""

#: Prints the SHA-256 sum of the file $1; status 0 even if there is none.
_SUM = private_directory.TRUST + """
mkdir -p "$(dirname "$1")" && trust "$(dirname "$1")" || exit
[ ! -e "$1" ] || sha256sum "$1"
"""

#: Writes standard input to the file $1, in one step.
_PUT = """
new=$(mktemp "$1.XXXXXX") && cat > "$new" &&
  chmod 755 "$new" && mv "$new" "$1"
"""


def build(spec: run_spec.RunSpec, place: executor.Executor,
          directory: str) -> dict[str, bytes]:
    """Build the products at one place.

    :param directory: a scratch directory, created and removed
    :returns: product to its bytes; empty if there is nothing to build
    :raises Unreachable: if a command fails, with the end of its output
    """
    if not spec.builds:
        return {}
    inner = posixpath.join(directory, 'build')
    for words in spec.builds:
        _run(place, ['sh', '-c', _BUILD, 'build', inner, *words],
             timeout_s=BUILD_LIMIT_S)
    products = {}
    for product in spec.products:
        path = posixpath.join(inner, product)
        products[product] = _run(place, ['cat', path],
                                 timeout_s=COPY_LIMIT_S).stdout
    _run(place, ['rm', '-rf', directory])
    return products


def distribute(products: Mapping[str, bytes],
               places: Sequence[executor.Executor]) -> dict[str, bytes]:
    """Install the products that have absolute names at each other place.

    :returns: the other products, to be put into the directory of each job
    :raises InvalidInput: if a place has another file by that name
    :raises Unreachable: if a file cannot be installed, or others could
        replace it
    """
    others: dict[str, bytes] = {}
    for product, content in products.items():
        if not posixpath.isabs(product):
            others[posixpath.basename(product)] = content
            continue
        for place in places:
            _install(place, product, content)
    return others


def _install(place: executor.Executor, path: str, content: bytes) -> None:
    present = _run(place, ['sh', '-c', _SUM, 'sum', path],
                   timeout_s=COPY_LIMIT_S).stdout.split()
    if not present:
        _run(place, ['sh', '-c', _PUT, 'put', path], content, COPY_LIMIT_S)
    elif present[0] != hashlib.sha256(content).hexdigest().encode():
        raise exception.InvalidInput(
            f'{place.name}:{path}', 'differs from the binary of the other '
            'arm; remove it, and the binary is copied there')


def _run(place: executor.Executor, argv: Sequence[str], stdin: bytes = b'',
         timeout_s: float = executor.SHORT_S) -> executor.Completed:
    done = place.run(argv, stdin, timeout_s)
    if done.status:
        output = (done.stderr or done.stdout).decode('utf-8', 'replace')
        raise exception.Unreachable(
            f'{place.name}: building failed: '
            f'{_cause(output) or f"status {done.status}"}')
    return done


def _cause(output: str) -> str:
    """The last lines, without those in which make only says that it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line for line in lines if not _MAKE.match(line)]
    return printable.one_line(' / '.join((causes or lines)[-2:]))
