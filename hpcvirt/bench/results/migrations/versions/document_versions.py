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

"""Say in each document which version of the schema it has."""

import sqlalchemy
from alembic import op

revision = '0002'
down_revision = '0001'

_BEGIN = '{"schema_version": '


def upgrade() -> None:
    """Add the version to documents that have none."""
    for name in ('hpcvirt_runs', 'hpcvirt_samples'):
        table = sqlalchemy.table(name, sqlalchemy.column(
            'document', sqlalchemy.Text()))
        rest = sqlalchemy.func.substr(table.c.document, 2,
                                      type_=sqlalchemy.Text())
        op.execute(table.update().where(
            ~table.c.document.startswith(_BEGIN, autoescape=True)).values(
                document=sqlalchemy.literal(f'{_BEGIN}1, ') + rest))
