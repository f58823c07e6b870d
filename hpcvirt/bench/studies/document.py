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

"""Studies and comparisons as documents for programs."""

from typing import Any

from hpcvirt import serialization
from hpcvirt.bench.studies import claim_check
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study


def of_study(study_: study.Study) -> dict[str, Any]:
    """Return a study with what follows from its figures."""
    return {
        **serialization.to_plain(study_),
        # Nobody but the contributors has the file.
        'document': {name: value for name, value in serialization.to_plain(
            study_.document).items() if name != 'file'},
        'rows': [_row(row) for row in study_.rows],
        'claims': [{
            **serialization.to_plain(checked.claim),
            'computed': checked.computed, 'agrees': checked.agrees,
        } for checked in claim_check.check(study_)],
    }


def of_comparison(compared: comparison.Comparison) -> dict[str, Any]:
    """Return a published figure and the results of the site."""
    return {**serialization.to_plain(compared),
            'row': None if compared.row is None else _row(compared.row)}


def _row(row: study.Row) -> dict[str, Any]:
    return {**serialization.to_plain(row), 'ratio': row.ratio}
