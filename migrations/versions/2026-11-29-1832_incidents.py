"""incidents and resume receipts

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

from registry.db import UtcTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt_pulse",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("heard_at", UtcTime(), nullable=False),
        sa.Column("step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("step_at", UtcTime(), nullable=True),
        sa.Column("intervals", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.CheckConstraint("step >= 0", name=op.f("ck_attempt_pulse_step")),
        sa.ForeignKeyConstraint(
            ["project_id", "attempt_id"],
            ["attempt.project_id", "attempt.id"],
            name=op.f("fk_attempt_pulse_project_id_attempt_id_attempt"),
        ),
        sa.PrimaryKeyConstraint("project_id", "attempt_id", name=op.f("pk_attempt_pulse")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "resume_receipt",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("loaded_run", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("loaded_attempt", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("loaded_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("loaded_kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("weights", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("optimizer", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("data_position", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("random_state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("restore_seconds", sa.Double(), nullable=True),
        sa.Column("note", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("restored_at", UtcTime(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint(
            "data_position IN ('restored', 'fresh', 'absent', 'unknown')", name=op.f("ck_resume_receipt_data_position")
        ),
        sa.CheckConstraint(
            "optimizer IN ('restored', 'fresh', 'absent', 'unknown')", name=op.f("ck_resume_receipt_optimizer")
        ),
        sa.CheckConstraint(
            "random_state IN ('restored', 'fresh', 'absent', 'unknown')", name=op.f("ck_resume_receipt_random_state")
        ),
        sa.CheckConstraint(
            "weights IN ('restored', 'fresh', 'absent', 'unknown')", name=op.f("ck_resume_receipt_weights")
        ),
        sa.CheckConstraint("loaded_step >= 0", name=op.f("ck_resume_receipt_loaded_step")),
        sa.CheckConstraint("restore_seconds >= 0", name=op.f("ck_resume_receipt_restore_seconds")),
        sa.ForeignKeyConstraint(
            ["project_id", "attempt_id"],
            ["attempt.project_id", "attempt.id"],
            name=op.f("fk_resume_receipt_project_id_attempt_id_attempt"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_resume_receipt_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_resume_receipt_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resume_receipt")),
        sa.UniqueConstraint(
            "project_id", "attempt_id", "digest", name=op.f("uq_resume_receipt_project_id_attempt_id_digest")
        ),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_resume_receipt_project_id_id")),
    )
    op.create_index(
        op.f("ix_resume_receipt_project_id_checkpoint_id"),
        "resume_receipt",
        ["project_id", "checkpoint_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_resume_receipt_project_id_run_id"), "resume_receipt", ["project_id", "run_id"], unique=False
    )
    op.create_table(
        "checkpoint_suspicion",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("replica_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("signature", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("reason", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("incidents", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("since", UtcTime(), nullable=False),
        sa.Column("lifted_at", UtcTime(), nullable=True),
        sa.Column("lifted_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_checkpoint_suspicion_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "replica_id"],
            ["replica.project_id", "replica.id"],
            name=op.f("fk_checkpoint_suspicion_project_id_replica_id_replica"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint_suspicion")),
        sa.UniqueConstraint(
            "project_id",
            "checkpoint_id",
            "signature",
            name=op.f("uq_checkpoint_suspicion_project_id_checkpoint_id_signature"),
        ),
    )
    op.create_index(
        op.f("ix_checkpoint_suspicion_project_id_replica_id"),
        "checkpoint_suspicion",
        ["project_id", "replica_id"],
        unique=False,
    )
    op.create_table(
        "incident",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("key", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("cause", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("cause_said_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("evidence", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("occurred_at", UtcTime(), nullable=False),
        sa.Column("exit_code", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("signal", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("node", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("hardware", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("log_excerpt", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("last_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("steps_lost", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("steps_lost_said", sa.Boolean(), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("replica_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("signature", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("fruitless", sa.Boolean(), nullable=False),
        sa.Column("note", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("opened_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("closed_at", UtcTime(), nullable=True),
        sa.Column("ending", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("recovered_at", UtcTime(), nullable=True),
        sa.CheckConstraint("ending IN ('recovered', 'closed')", name=op.f("ck_incident_ending")),
        sa.CheckConstraint(
            "kind IN ('crashed', 'lost', 'stalled', 'reformed', 'reported')", name=op.f("ck_incident_kind")
        ),
        sa.CheckConstraint("(closed_at IS NULL) = (ending IS NULL)", name=op.f("ck_incident_closed")),
        sa.CheckConstraint("steps_lost >= 0 AND last_step >= 0", name=op.f("ck_incident_steps")),
        sa.ForeignKeyConstraint(
            ["project_id", "attempt_id"],
            ["attempt.project_id", "attempt.id"],
            name=op.f("fk_incident_project_id_attempt_id_attempt"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_incident_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "replica_id"],
            ["replica.project_id", "replica.id"],
            name=op.f("fk_incident_project_id_replica_id_replica"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_incident_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incident")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_incident_project_id_id")),
        sa.UniqueConstraint("project_id", "run_id", "key", name=op.f("uq_incident_project_id_run_id_key")),
    )
    op.create_index(op.f("ix_incident_occurred_at_id"), "incident", ["occurred_at", "id"], unique=False)
    op.create_index(
        "ix_incident_open",
        "incident",
        ["project_id", "run_id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(op.f("ix_incident_project_id_attempt_id"), "incident", ["project_id", "attempt_id"], unique=False)
    op.create_index(
        op.f("ix_incident_project_id_checkpoint_id"), "incident", ["project_id", "checkpoint_id"], unique=False
    )
    op.create_index(
        op.f("ix_incident_project_id_occurred_at_id"), "incident", ["project_id", "occurred_at", "id"], unique=False
    )
    op.create_index(op.f("ix_incident_project_id_replica_id"), "incident", ["project_id", "replica_id"], unique=False)
    op.create_index(
        op.f("ix_incident_project_id_run_id_occurred_at_id"),
        "incident",
        ["project_id", "run_id", "occurred_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_incident_open",
        "incident",
        ["project_id", "attempt_id", "kind"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL AND kind <> 'reported'"),
        postgresql_where=sa.text("closed_at IS NULL AND kind <> 'reported'"),
    )
    op.create_index(
        "ix_attempt_watched",
        "attempt",
        ["heartbeat_at"],
        unique=False,
        sqlite_where=sa.text("state = 'running' AND heartbeat_at IS NOT NULL"),
        postgresql_where=sa.text("state = 'running' AND heartbeat_at IS NOT NULL"),
    )
    _make_resume_agreements()


def downgrade() -> None:
    _drop_resume_agreements()
    op.drop_index(
        "ix_attempt_watched",
        table_name="attempt",
        sqlite_where=sa.text("state = 'running' AND heartbeat_at IS NOT NULL"),
        postgresql_where=sa.text("state = 'running' AND heartbeat_at IS NOT NULL"),
    )
    op.drop_index(
        "uq_incident_open",
        table_name="incident",
        sqlite_where=sa.text("closed_at IS NULL AND kind <> 'reported'"),
        postgresql_where=sa.text("closed_at IS NULL AND kind <> 'reported'"),
    )
    op.drop_index(op.f("ix_incident_project_id_run_id_occurred_at_id"), table_name="incident")
    op.drop_index(op.f("ix_incident_project_id_replica_id"), table_name="incident")
    op.drop_index(op.f("ix_incident_project_id_occurred_at_id"), table_name="incident")
    op.drop_index(op.f("ix_incident_project_id_checkpoint_id"), table_name="incident")
    op.drop_index(op.f("ix_incident_project_id_attempt_id"), table_name="incident")
    op.drop_index(
        "ix_incident_open",
        table_name="incident",
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.drop_index(op.f("ix_incident_occurred_at_id"), table_name="incident")
    op.drop_table("incident")
    op.drop_index(op.f("ix_checkpoint_suspicion_project_id_replica_id"), table_name="checkpoint_suspicion")
    op.drop_table("checkpoint_suspicion")
    op.drop_index(op.f("ix_resume_receipt_project_id_run_id"), table_name="resume_receipt")
    op.drop_index(op.f("ix_resume_receipt_project_id_checkpoint_id"), table_name="resume_receipt")
    op.drop_table("resume_receipt")
    op.drop_table("attempt_pulse")


def _make_resume_agreements() -> None:
    whole = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    words = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "resume_agreement",
        sa.Column("id", whole, autoincrement=False, nullable=False),
        sa.Column("project_id", whole, nullable=False),
        sa.Column("run_id", whole, nullable=False),
        sa.Column("key", words, nullable=False),
        sa.Column("hosts", whole, nullable=False),
        sa.Column("checkpoint_id", whole, nullable=False),
        sa.Column("round", whole, nullable=False),
        sa.Column("refused", words, nullable=False),
        sa.Column("sealed_at", UtcTime(), nullable=True),
        sa.Column("failed", words, nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("hosts >= 1", name=op.f("ck_resume_agreement_hosts")),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"],
            ["run.project_id", "run.id"],
            name=op.f("fk_resume_agreement_project_id_run_id_run"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_resume_agreement_project_id_checkpoint_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resume_agreement")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_resume_agreement_project_id_id")),
        sa.UniqueConstraint("project_id", "run_id", "key", name=op.f("uq_resume_agreement_project_id_run_id_key")),
    )
    op.create_index(
        op.f("ix_resume_agreement_project_id_checkpoint_id"), "resume_agreement", ["project_id", "checkpoint_id"]
    )
    op.create_table(
        "resume_agreement_host",
        sa.Column("project_id", whole, autoincrement=False, nullable=False),
        sa.Column("agreement_id", whole, autoincrement=False, nullable=False),
        sa.Column("host", words, nullable=False),
        sa.Column("round", whole, nullable=False),
        sa.Column("ready_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "agreement_id"],
            ["resume_agreement.project_id", "resume_agreement.id"],
            name=op.f("fk_resume_agreement_host_project_id_agreement_id_resume_agreement"),
        ),
        sa.PrimaryKeyConstraint("project_id", "agreement_id", "host", name=op.f("pk_resume_agreement_host")),
        sqlite_with_rowid=False,
    )


def _drop_resume_agreements() -> None:
    op.drop_table("resume_agreement_host")
    op.drop_index(op.f("ix_resume_agreement_project_id_checkpoint_id"), table_name="resume_agreement")
    op.drop_table("resume_agreement")
