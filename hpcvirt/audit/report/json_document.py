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

"""Write an audit as a JSON document, for programs."""

from typing import Any

from hpcvirt.audit import audit as audits

SCHEMA_VERSION = 1


def document(audit: audits.Audit) -> dict[str, Any]:
    """Turn an audit into dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'host': audit.host,
        'clean': audit.is_clean,
        'counts': {severity.value: count for severity, count
                   in audits.counts(audit).items()},
        'findings': [{
            'code': item.code, 'severity': item.severity.value,
            'found': item.found, 'expected': item.expected, 'why': item.why,
            'sources': list(item.sources), 'change': list(item.change),
        } for item in audit.findings],
        'checked': list(audit.checked),
    }
