# SPDX-License-Identifier: Apache-2.0

"""Studies and comparisons as documents."""

from typing import Any

from hpcvirt import serialization
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study


def describe_study(study_: study.Study) -> dict[str, Any]:
    """Return a study with the ratios of its figures."""
    return {
        **serialization.dump(study_),
        # Only contributors have the file.
        'document': {name: value for name, value in serialization.dump(
            study_.document).items() if name != 'file'},
        'rows': [_row(row) for row in study_.rows],
    }


def describe_comparison(compared: comparison.SiteComparison) -> dict[str, Any]:
    """Return a published figure and the results of the site."""
    return {**serialization.dump(compared),
            'row': None if compared.row is None else _row(compared.row)}


def _row(row: study.PublishedComparison) -> dict[str, Any]:
    return {**serialization.dump(row), 'ratio': row.ratio}
