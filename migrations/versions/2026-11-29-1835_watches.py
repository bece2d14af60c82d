"""standing watches and their findings

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

from registry.db import UtcTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "alias_move",
        sa.Column("rolled_back_to", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
    )
    op.create_table(
        "watch",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("alias_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("benchmark", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("capability", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("target", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("note", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("created_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.CheckConstraint("kind IN ('score', 'loss')", name=op.f("ck_watch_kind")),
        sa.CheckConstraint("kind = 'score' OR (run_id IS NOT NULL AND benchmark IS NULL)", name=op.f("ck_watch_loss")),
        sa.CheckConstraint("(run_id IS NULL) <> (alias_id IS NULL)", name=op.f("ck_watch_subject")),
        sa.CheckConstraint("benchmark IS NULL OR capability IS NULL", name=op.f("ck_watch_watched")),
        sa.ForeignKeyConstraint(
            ["project_id", "alias_id"],
            ["alias.project_id", "alias.id"],
            name=op.f("fk_watch_project_id_alias_id_alias"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_watch_project_id_project")),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_watch_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_watch")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_watch_project_id_id")),
        sa.UniqueConstraint("project_id", "target", name=op.f("uq_watch_project_id_target")),
    )
    op.create_index(op.f("ix_watch_project_id_alias_id"), "watch", ["project_id", "alias_id"], unique=False)
    op.create_index(op.f("ix_watch_project_id_run_id"), "watch", ["project_id", "run_id"], unique=False)
    op.create_index(
        "ix_watch_standing",
        "watch",
        ["project_id", "kind"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "watch_due",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("watch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "watch_id"],
            ["watch.project_id", "watch.id"],
            name=op.f("fk_watch_due_project_id_watch_id_watch"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_watch_due")),
    )
    op.create_index(op.f("ix_watch_due_project_id_watch_id"), "watch_due", ["project_id", "watch_id"], unique=False)
    op.create_table(
        "finding",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("watch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("from_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("to_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sentence", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("detail", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("opened_at", UtcTime(), nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.Column("acknowledged_at", UtcTime(), nullable=True),
        sa.Column("acknowledged_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("note", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.CheckConstraint(
            "(acknowledged_at IS NULL) = (acknowledged_by IS NULL)", name=op.f("ck_finding_acknowledged")
        ),
        sa.CheckConstraint("state IN ('open', 'acknowledged', 'withdrawn')", name=op.f("ck_finding_state")),
        sa.CheckConstraint("from_step >= 0 AND to_step >= 0", name=op.f("ck_finding_steps")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_finding_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_finding_project_id_run_id_run")
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "watch_id"],
            ["watch.project_id", "watch.id"],
            name=op.f("fk_finding_project_id_watch_id_watch"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_finding")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_finding_project_id_id")),
    )
    op.create_index(
        op.f("ix_finding_project_id_checkpoint_id"), "finding", ["project_id", "checkpoint_id"], unique=False
    )
    op.create_index(
        op.f("ix_finding_project_id_run_id_state"), "finding", ["project_id", "run_id", "state"], unique=False
    )
    op.create_index(op.f("ix_finding_project_id_state_id"), "finding", ["project_id", "state", "id"], unique=False)
    op.create_index(
        op.f("ix_finding_project_id_watch_id_id"), "finding", ["project_id", "watch_id", "id"], unique=False
    )


def downgrade() -> None:
    op.drop_table("finding")
    op.drop_table("watch_due")
    op.drop_table("watch")
    op.drop_column("alias_move", "rolled_back_to")
