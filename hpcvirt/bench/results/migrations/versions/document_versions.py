# SPDX-License-Identifier: Apache-2.0

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
