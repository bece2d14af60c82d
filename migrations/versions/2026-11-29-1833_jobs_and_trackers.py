"""jobs and trackers

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

from registry.db import UtcTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # First: PostgreSQL takes it for the foreign keys below.
    op.create_index("uq_tracker_link_project_id", "tracker_link", ["project_id", "id"], unique=True)
    op.create_index(
        op.f("ix_tracker_link_project_id_external_run_id"), "tracker_link", ["project_id", "external_run_id"]
    )
    op.create_table(
        "worker",
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("seen_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_worker")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("key", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("resource", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("arguments", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("claims", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("failures", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("not_before", UtcTime(), nullable=False),
        sa.Column("worker", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("lease_until", UtcTime(), nullable=True),
        sa.Column("position", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("progress_done", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("progress_total", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("progress_text", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("error_code", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("error", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("report", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("asked_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=True),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'cancelled')", name=op.f("ck_job_state")),
        sa.CheckConstraint("(worker IS NULL) = (lease_until IS NULL)", name=op.f("ck_job_lease")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_job_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index(
        "ix_job_due",
        "job",
        ["not_before", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(op.f("ix_job_project_id_id"), "job", ["project_id", "id"], unique=False)
    op.create_index(
        "ix_job_running",
        "job",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "uq_job_waiting",
        "job",
        ["project_id", "kind", "key"],
        unique=True,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "tracker_setting",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("push_mlflow", sa.Boolean(), nullable=False),
        sa.Column("push_wandb", sa.Boolean(), nullable=False),
        sa.Column("best_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("refresh_seconds", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("changed_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.CheckConstraint("refresh_seconds >= 30", name=op.f("ck_tracker_setting_refresh_seconds")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_tracker_setting_project_id_project")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_tracker_setting")),
    )
    op.create_table(
        "tracker_field",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("link_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("field", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("value", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("applied", sa.Boolean(), nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "link_id"],
            ["tracker_link.project_id", "tracker_link.id"],
            name=op.f("fk_tracker_field_project_id_link_id_tracker_link"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "link_id", "field", name=op.f("pk_tracker_field")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tracker_state",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("link_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("error", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("checked_at", UtcTime(), nullable=True),
        sa.Column("synced_at", UtcTime(), nullable=True),
        sa.Column("next_check_at", UtcTime(), nullable=True),
        sa.Column("external_state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("external_name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("version", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("curves", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("push_state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("push_error", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("pushed_at", UtcTime(), nullable=True),
        sa.Column("pushed_run", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.CheckConstraint(
            "push_state IN ('off', 'waiting', 'ok', 'failed')", name=op.f("ck_tracker_state_push_state")
        ),
        sa.CheckConstraint(
            "state IN ('new', 'ok', 'unreachable', 'refused', 'not-found', 'deleted', 'not-allowed', "
            "'untrusted-certificate', 'redirected', 'not-a-tracker', 'failed')",
            name=op.f("ck_tracker_state_state"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "link_id"],
            ["tracker_link.project_id", "tracker_link.id"],
            name=op.f("fk_tracker_state_project_id_link_id_tracker_link"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "link_id", name=op.f("pk_tracker_state")),
    )
    op.create_index(
        "ix_tracker_state_due",
        "tracker_state",
        ["next_check_at"],
        unique=False,
        sqlite_where=sa.text("next_check_at IS NOT NULL"),
        postgresql_where=sa.text("next_check_at IS NOT NULL"),
    )
    op.create_table(
        "tracker_checkpoint",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("link_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("external_id", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("origin", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=True),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.CheckConstraint("origin IN ('there', 'here')", name=op.f("ck_tracker_checkpoint_origin")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_tracker_checkpoint_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "link_id"],
            ["tracker_link.project_id", "tracker_link.id"],
            name=op.f("fk_tracker_checkpoint_project_id_link_id_tracker_link"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "link_id", "checkpoint_id", name=op.f("pk_tracker_checkpoint")),
        sa.UniqueConstraint(
            "project_id", "link_id", "external_id", name=op.f("uq_tracker_checkpoint_project_id_link_id_external_id")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_tracker_checkpoint_project_id_checkpoint_id"),
        "tracker_checkpoint",
        ["project_id", "checkpoint_id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_tracker_checkpoint_project_id_checkpoint_id"), table_name="tracker_checkpoint")
    op.drop_table("tracker_checkpoint")
    op.drop_index(
        "ix_tracker_state_due",
        table_name="tracker_state",
        sqlite_where=sa.text("next_check_at IS NOT NULL"),
        postgresql_where=sa.text("next_check_at IS NOT NULL"),
    )
    op.drop_table("tracker_state")
    op.drop_table("tracker_field")
    op.drop_table("tracker_setting")
    op.drop_index(
        "uq_job_waiting",
        table_name="job",
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.drop_index(
        "ix_job_running",
        table_name="job",
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.drop_index(op.f("ix_job_project_id_id"), table_name="job")
    op.drop_index(
        "ix_job_due",
        table_name="job",
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.drop_table("job")
    op.drop_table("worker")
    op.drop_index(op.f("ix_tracker_link_project_id_external_run_id"), table_name="tracker_link")
    op.drop_index("uq_tracker_link_project_id", table_name="tracker_link")
