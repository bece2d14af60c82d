"""drills: rehearsed restores

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

from registry.db import UtcTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drill",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("replica_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("key", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("host", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("tier", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("format", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("layout_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("software", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("ended_at", UtcTime(), nullable=False),
        sa.Column("read_seconds", sa.Double(), nullable=True),
        sa.Column("verify_seconds", sa.Double(), nullable=True),
        sa.Column("convert_seconds", sa.Double(), nullable=True),
        sa.Column("load_seconds", sa.Double(), nullable=True),
        sa.Column("run_seconds", sa.Double(), nullable=True),
        sa.Column("bytes_read", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("steps_run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("losses", sa.LargeBinary(), nullable=True),
        sa.Column("read", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("verify", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("files", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("run", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("continuation", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("cold_start", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("verdict", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("exact", sa.Boolean(), nullable=True),
        sa.Column("reason", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("comparison", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("cold_start IN ('passed', 'failed', 'not_tried')", name=op.f("ck_drill_cold_start")),
        sa.CheckConstraint("continuation IN ('passed', 'failed', 'not_tried')", name=op.f("ck_drill_continuation")),
        sa.CheckConstraint("files IN ('passed', 'failed', 'not_tried')", name=op.f("ck_drill_files")),
        sa.CheckConstraint("read IN ('passed', 'failed', 'not_tried')", name=op.f("ck_drill_read")),
        sa.CheckConstraint("run IN ('passed', 'failed', 'not_tried')", name=op.f("ck_drill_run")),
        sa.CheckConstraint("tier IN ('local', 'shared', 'object')", name=op.f("ck_drill_tier")),
        sa.CheckConstraint("verdict IN ('passed', 'failed')", name=op.f("ck_drill_verdict")),
        sa.CheckConstraint("verify IN ('passed', 'failed', 'not_tried')", name=op.f("ck_drill_verify")),
        sa.CheckConstraint("bytes_read >= 0 AND steps_run >= 0", name=op.f("ck_drill_counts")),
        sa.CheckConstraint("ended_at >= started_at", name=op.f("ck_drill_times")),
        sa.CheckConstraint(
            "read_seconds >= 0 AND verify_seconds >= 0 AND convert_seconds >= 0 AND load_seconds >= 0"
            " AND run_seconds >= 0",
            name=op.f("ck_drill_seconds"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_drill_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "layout_id"],
            ["layout.project_id", "layout.id"],
            name=op.f("fk_drill_project_id_layout_id_layout"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "replica_id"],
            ["replica.project_id", "replica.id"],
            name=op.f("fk_drill_project_id_replica_id_replica"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_drill_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drill")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_drill_project_id_id")),
        sa.UniqueConstraint("project_id", "key", name=op.f("uq_drill_project_id_key")),
    )
    op.create_index(
        op.f("ix_drill_project_id_checkpoint_id_id"), "drill", ["project_id", "checkpoint_id", "id"], unique=False
    )
    op.create_index(op.f("ix_drill_project_id_layout_id"), "drill", ["project_id", "layout_id"], unique=False)
    op.create_index(op.f("ix_drill_project_id_replica_id"), "drill", ["project_id", "replica_id"], unique=False)
    op.create_index(op.f("ix_drill_project_id_run_id_id"), "drill", ["project_id", "run_id", "id"], unique=False)
    op.create_index(
        op.f("ix_drill_project_id_tier_format_id"), "drill", ["project_id", "tier", "format", "id"], unique=False
    )


def downgrade() -> None:
    op.drop_table("drill")
