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

"""The five studies that hpcvirt implements, files of this package."""

import functools
import importlib.resources

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import yaml_document
from hpcvirt.bench.studies import study

IDS = ('S1', 'S2', 'S3', 'S4', 'S5')


def get(name: str) -> study.Study:
    """Load a study by its id, in upper or lower case.

    :raises InvalidInput: if there is no such study
    """
    if name.upper() not in IDS:
        raise exception.InvalidInput(
            name, f'no such study; there are {", ".join(IDS)}')
    return _load(name.upper())


def studies() -> tuple[study.Study, ...]:
    """Load all studies."""
    return tuple(_load(name) for name in IDS)


@functools.cache
def _load(name: str) -> study.Study:
    folder = importlib.resources.files('hpcvirt.bench.studies')
    text = (folder / f'{name.lower()}.yaml').read_text(encoding='utf-8')
    where = f'study {name}'
    return serialization.from_plain(
        study.Study, yaml_document.value(text, where), where)
