# SPDX-License-Identifier: Apache-2.0

"""Load the five studies that hpcvirt implements from files of this package."""

import functools
import importlib.resources

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt import yaml_document
from hpcvirt.bench.studies import study

IDS = ('S1', 'S2', 'S3', 'S4', 'S5')


def get(name: str) -> study.Study:
    """Load a study by its id, in upper or lower case.

    :raises InvalidInput: if there is no such study
    """
    if name.upper() not in IDS:
        raise exception.InvalidInput(
            name, f'no such study; the studies are {", ".join(IDS)}'
            + words.nearest(name, IDS))
    return _load(name.upper())


def studies() -> tuple[study.Study, ...]:
    """Load all studies."""
    return tuple(_load(name) for name in IDS)


@functools.cache
def _load(name: str) -> study.Study:
    folder = importlib.resources.files('hpcvirt.bench.studies')
    text = (folder / f'{name.lower()}.yaml').read_text(encoding='utf-8')
    where = f'study {name}'
    return serialization.load(
        study.Study, yaml_document.value(text, where), where)
