"""first tables

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

from registry.db import UtcTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "manifest",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_manifest")),
        sa.UniqueConstraint("digest", name=op.f("uq_manifest_digest")),
    )
    op.create_table(
        "project",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scope", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("bound", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=True),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.CheckConstraint("scope IN ('read', 'write', 'admin')", name=op.f("ck_token_scope")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("digest", name=op.f("uq_token_digest")),
    )
    op.create_table(
        "audit_entry",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("actor", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("action", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("subject_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("detail", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_audit_entry_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entry")),
    )
    with op.batch_alter_table("audit_entry", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_entry_project_id_id"), ["project_id", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_audit_entry_subject_id"), ["subject_id"], unique=False)

    op.create_table(
        "benchmark",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("capability", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("direction", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("scale", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("chance", sa.Double(), nullable=True),
        sa.Column("sample_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("preferred_metrics", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("direction IN ('higher', 'lower', 'target')", name=op.f("ck_benchmark_direction")),
        sa.CheckConstraint("sample_count > 0", name=op.f("ck_benchmark_sample_count")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_benchmark_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_benchmark_project_id_id")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_benchmark_project_id_name")),
    )
    op.create_table(
        "code_version",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("commit", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("dirty", sa.Boolean(), nullable=True),
        sa.Column("diff_digest", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("remote", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_code_version_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_code_version")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_code_version_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_code_version_project_id_id")),
    )
    op.create_table(
        "config",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_config_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_config")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_config_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_config_project_id_id")),
    )
    op.create_table(
        "data_version",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("mix_digest", sa.LargeBinary(), nullable=False),
        sa.Column("uri", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_data_version_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_version")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_data_version_project_id_id")),
        sa.UniqueConstraint(
            "project_id", "name", "mix_digest", name=op.f("uq_data_version_project_id_name_mix_digest")
        ),
    )
    op.create_table(
        "environment",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_environment_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_environment_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_environment_project_id_id")),
    )
    op.create_table(
        "layout",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("world_size", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("tp", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("pp", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("dp", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("cp", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("ep", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("sharding", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("extra", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint(
            "world_size >= 1 AND tp >= 1 AND pp >= 1 AND dp >= 1 AND cp >= 1 AND ep >= 1",
            name=op.f("ck_layout_degrees"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_layout_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_layout")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_layout_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_layout_project_id_id")),
    )
    op.create_table(
        "login_code",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("used_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_login_code_token_id_token")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_login_code")),
    )
    with op.batch_alter_table("login_code", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_login_code_token_id"), ["token_id"], unique=False)

    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("topic", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("subject_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("payload", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("delivered_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_outbox_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outbox_project_id"), ["project_id"], unique=False)
        batch_op.create_index(
            "ix_outbox_waiting",
            ["project_id", "id"],
            unique=False,
            sqlite_where=sa.text("delivered_at IS NULL"),
            postgresql_where=sa.text("delivered_at IS NULL"),
        )

    op.create_table(
        "token_project",
        sa.Column(
            "token_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_token_project_project_id_project")),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_token_project_token_id_token")),
        sa.PrimaryKeyConstraint("token_id", "project_id", name=op.f("pk_token_project")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("token_project", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_token_project_project_id"), ["project_id"], unique=False)

    op.create_table(
        "web_session",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_web_session_token_id_token")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_web_session")),
    )
    with op.batch_alter_table("web_session", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_web_session_token_id"), ["token_id"], unique=False)

    op.create_table(
        "config_entry",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "config_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("path", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("text", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "config_id"],
            ["config.project_id", "config.id"],
            name=op.f("fk_config_entry_project_id_config_id_config"),
        ),
        sa.PrimaryKeyConstraint("project_id", "config_id", "path", name=op.f("pk_config_entry")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("config_entry", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_config_entry_project_id_path_number_config_id"),
            ["project_id", "path", "number", "config_id"],
            unique=False,
        )

    op.create_table(
        "data_source",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "data_version_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("source", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("weight", sa.Double(), nullable=True),
        sa.Column("tokens", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.CheckConstraint("tokens >= 0", name=op.f("ck_data_source_tokens")),
        sa.CheckConstraint("weight >= 0", name=op.f("ck_data_source_weight")),
        sa.ForeignKeyConstraint(
            ["project_id", "data_version_id"],
            ["data_version.project_id", "data_version.id"],
            name=op.f("fk_data_source_project_id_data_version_id_data_version"),
        ),
        sa.PrimaryKeyConstraint("project_id", "data_version_id", "source", name=op.f("pk_data_source")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("owner", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("team", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("model_family", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("parameter_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("config_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("started_at", UtcTime(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("parameter_count > 0", name=op.f("ck_run_parameter_count")),
        sa.ForeignKeyConstraint(
            ["project_id", "config_id"],
            ["config.project_id", "config.id"],
            name=op.f("fk_run_project_id_config_id_config"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_run_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_run_project_id_id")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_run_project_id_name")),
    )
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_project_id_config_id"), ["project_id", "config_id"], unique=False)

    op.create_table(
        "score_metric",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("benchmark_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("metric", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("filter", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "benchmark_id"],
            ["benchmark.project_id", "benchmark.id"],
            name=op.f("fk_score_metric_project_id_benchmark_id_benchmark"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_score_metric")),
        sa.UniqueConstraint(
            "project_id",
            "benchmark_id",
            "metric",
            "filter",
            name=op.f("uq_score_metric_project_id_benchmark_id_metric_filter"),
        ),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_score_metric_project_id_id")),
    )
    op.create_table(
        "attempt",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("resumed_from_checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("resumed_from_run", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("resumed_from_attempt", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("resumed_from_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("resumed_from_kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("restart", sa.Boolean(), nullable=False),
        sa.Column("live_through_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("command", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("reason", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("changes", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("config_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("environment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("layout_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("nodes", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("started_at", UtcTime(), nullable=True),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.Column("exit_code", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("heartbeat_at", UtcTime(), nullable=True),
        sa.Column("heartbeat_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint(
            "state IN ('running', 'finished', 'failed', 'lost', 'stalled', 'stopped')", name=op.f("ck_attempt_state")
        ),
        sa.CheckConstraint("number >= 1", name=op.f("ck_attempt_number")),
        sa.CheckConstraint("resumed_from_step >= 0", name=op.f("ck_attempt_resumed_from_step")),
        sa.ForeignKeyConstraint(
            ["project_id", "config_id"],
            ["config.project_id", "config.id"],
            name=op.f("fk_attempt_project_id_config_id_config"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "environment_id"],
            ["environment.project_id", "environment.id"],
            name=op.f("fk_attempt_project_id_environment_id_environment"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "layout_id"],
            ["layout.project_id", "layout.id"],
            name=op.f("fk_attempt_project_id_layout_id_layout"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "resumed_from_checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_attempt_project_id_resumed_from_checkpoint_id_checkpoint"),
            use_alter=True,
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_attempt_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_attempt_project_id_id")),
        sa.UniqueConstraint("project_id", "run_id", "key", name=op.f("uq_attempt_project_id_run_id_key")),
        sa.UniqueConstraint("project_id", "run_id", "number", name=op.f("uq_attempt_project_id_run_id_number")),
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_project_id_config_id"), ["project_id", "config_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_attempt_project_id_environment_id"), ["project_id", "environment_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_attempt_project_id_layout_id"), ["project_id", "layout_id"], unique=False)
        batch_op.create_index(
            "ix_attempt_waiting",
            ["project_id"],
            unique=False,
            sqlite_where=sa.text("resumed_from_step IS NOT NULL AND resumed_from_checkpoint_id IS NULL"),
            postgresql_where=sa.text("resumed_from_step IS NOT NULL AND resumed_from_checkpoint_id IS NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_attempt_project_id_resumed_from_checkpoint_id"),
            ["project_id", "resumed_from_checkpoint_id"],
            unique=False,
        )

    op.create_table(
        "run_tag",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("value", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_run_tag_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("project_id", "run_id", "name", name=op.f("pk_run_tag")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("run_tag", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_run_tag_project_id_name_value_run_id"),
            ["project_id", "name", "value", "run_id"],
            unique=False,
        )

    op.create_table(
        "score_series",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("score_metric_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("n_shot", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("version", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("harness", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("harness_version", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("n_samples", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("comparability", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "score_metric_id"],
            ["score_metric.project_id", "score_metric.id"],
            name=op.f("fk_score_series_project_id_score_metric_id_score_metric"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_score_series")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_score_series_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_score_series_project_id_id")),
    )
    with op.batch_alter_table("score_series", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_score_series_project_id_score_metric_id"), ["project_id", "score_metric_id"], unique=False
        )

    op.create_table(
        "tracker_link",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("uri", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("entity", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("external_project", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("external_run_id", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("kind IN ('mlflow', 'wandb')", name=op.f("ck_tracker_link_kind")),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_tracker_link_project_id_run_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tracker_link")),
        sa.UniqueConstraint(
            "project_id",
            "run_id",
            "kind",
            "uri",
            "external_run_id",
            name=op.f("uq_tracker_link_project_id_run_id_kind_uri_external_run_id"),
        ),
    )
    op.create_table(
        "attempt_skip",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "from_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("to_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.CheckConstraint("from_step >= 0 AND to_step >= from_step", name=op.f("ck_attempt_skip_steps")),
        sa.ForeignKeyConstraint(
            ["project_id", "attempt_id"],
            ["attempt.project_id", "attempt.id"],
            name=op.f("fk_attempt_skip_project_id_attempt_id_attempt"),
        ),
        sa.PrimaryKeyConstraint("project_id", "attempt_id", "from_step", name=op.f("pk_attempt_skip")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "checkpoint",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("saved_at", UtcTime(), nullable=False),
        sa.Column("saved_at_assumed", sa.Boolean(), nullable=False),
        sa.Column("tokens_seen", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("epoch", sa.Double(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("loss_special", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("lr", sa.Double(), nullable=True),
        sa.Column("lr_special", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("config_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("data_version_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("code_version_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("environment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("layout_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("data_cursor", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("format", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("format_version", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("save_seconds", sa.Double(), nullable=True),
        sa.Column("stall_seconds", sa.Double(), nullable=True),
        sa.Column("milestone", sa.Boolean(), nullable=False),
        sa.Column("notes", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("registration", sa.LargeBinary(), nullable=False),
        sa.Column("commit_registration", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("committed_at", UtcTime(), nullable=True),
        sa.CheckConstraint("(committed_at IS NULL) = (state = 'pending')", name=op.f("ck_checkpoint_committed_at")),
        sa.CheckConstraint("kind IN ('light', 'archive')", name=op.f("ck_checkpoint_kind")),
        sa.CheckConstraint("loss_special IN ('NaN', 'Infinity', '-Infinity')", name=op.f("ck_checkpoint_loss_special")),
        sa.CheckConstraint("lr_special IN ('NaN', 'Infinity', '-Infinity')", name=op.f("ck_checkpoint_lr_special")),
        sa.CheckConstraint("state IN ('pending', 'committed', 'deleted')", name=op.f("ck_checkpoint_state")),
        sa.CheckConstraint("loss IS NULL OR loss_special IS NULL", name=op.f("ck_checkpoint_loss_or_loss_special")),
        sa.CheckConstraint("lr IS NULL OR lr_special IS NULL", name=op.f("ck_checkpoint_lr_or_lr_special")),
        sa.CheckConstraint("save_seconds >= 0 AND stall_seconds >= 0", name=op.f("ck_checkpoint_seconds")),
        sa.CheckConstraint("step >= 0", name=op.f("ck_checkpoint_step")),
        sa.CheckConstraint("tokens_seen >= 0", name=op.f("ck_checkpoint_tokens_seen")),
        sa.ForeignKeyConstraint(
            ["project_id", "attempt_id"],
            ["attempt.project_id", "attempt.id"],
            name=op.f("fk_checkpoint_project_id_attempt_id_attempt"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "code_version_id"],
            ["code_version.project_id", "code_version.id"],
            name=op.f("fk_checkpoint_project_id_code_version_id_code_version"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "config_id"],
            ["config.project_id", "config.id"],
            name=op.f("fk_checkpoint_project_id_config_id_config"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "data_version_id"],
            ["data_version.project_id", "data_version.id"],
            name=op.f("fk_checkpoint_project_id_data_version_id_data_version"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "environment_id"],
            ["environment.project_id", "environment.id"],
            name=op.f("fk_checkpoint_project_id_environment_id_environment"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "layout_id"],
            ["layout.project_id", "layout.id"],
            name=op.f("fk_checkpoint_project_id_layout_id_layout"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "run_id"], ["run.project_id", "run.id"], name=op.f("fk_checkpoint_project_id_run_id_run")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_checkpoint_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_checkpoint_project_id_id")),
        sa.UniqueConstraint(
            "project_id",
            "run_id",
            "attempt_number",
            "step",
            "kind",
            name=op.f("uq_checkpoint_project_id_run_id_attempt_number_step_kind"),
        ),
    )
    with op.batch_alter_table("checkpoint", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_attempt_id_step"), ["project_id", "attempt_id", "step"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_code_version_id"), ["project_id", "code_version_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_config_id"), ["project_id", "config_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_data_version_id"), ["project_id", "data_version_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_environment_id"), ["project_id", "environment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_layout_id"), ["project_id", "layout_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_checkpoint_project_id_saved_at_id"), ["project_id", "saved_at", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_checkpoint_saved_at_id"), ["saved_at", "id"], unique=False)

    op.create_table(
        "series_chunk",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column(
            "first_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("last_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("arrival", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "count > 0 AND first_step >= 0 AND last_step >= first_step", name=op.f("ck_series_chunk_steps")
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "attempt_id"],
            ["attempt.project_id", "attempt.id"],
            name=op.f("fk_series_chunk_project_id_attempt_id_attempt"),
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "attempt_id", "name", "first_step", "digest", name=op.f("pk_series_chunk")
        ),
    )
    op.create_table(
        "alias",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("moved_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_alias_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_alias_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alias")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_alias_project_id_id")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_alias_project_id_name")),
    )
    with op.batch_alter_table("alias", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_alias_project_id_checkpoint_id"), ["project_id", "checkpoint_id"], unique=False
        )

    op.create_table(
        "checkpoint_metric",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("special", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.CheckConstraint("special IN ('NaN', 'Infinity', '-Infinity')", name=op.f("ck_checkpoint_metric_special")),
        sa.CheckConstraint("value IS NULL OR special IS NULL", name=op.f("ck_checkpoint_metric_value_or_special")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_checkpoint_metric_project_id_checkpoint_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("project_id", "checkpoint_id", "name", name=op.f("pk_checkpoint_metric")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("checkpoint_metric", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_checkpoint_metric_project_id_name_value_checkpoint_id"),
            ["project_id", "name", "value", "checkpoint_id"],
            unique=False,
        )

    op.create_table(
        "checkpoint_tag",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("value", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_checkpoint_tag_project_id_checkpoint_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("project_id", "checkpoint_id", "name", name=op.f("pk_checkpoint_tag")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("checkpoint_tag", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_checkpoint_tag_project_id_name_value_checkpoint_id"),
            ["project_id", "name", "value", "checkpoint_id"],
            unique=False,
        )

    op.create_table(
        "current_score",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "score_metric_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("special", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("stderr", sa.Double(), nullable=True),
        sa.Column("evaluated_micros", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("arrival", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.CheckConstraint("special IN ('NaN', 'Infinity', '-Infinity')", name=op.f("ck_current_score_special")),
        sa.CheckConstraint("value IS NULL OR special IS NULL", name=op.f("ck_current_score_value_or_special")),
        sa.PrimaryKeyConstraint("project_id", "checkpoint_id", "score_metric_id", name=op.f("pk_current_score")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("current_score", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_current_score_project_id_score_metric_id_value_checkpoint_id"),
            ["project_id", "score_metric_id", "value", "checkpoint_id"],
            unique=False,
        )

    op.create_table(
        "lineage_edge",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "child_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "parent_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("relation", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("parent_project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint(
            "relation IN ('resumed_from', 'fine_tuned_from', 'merged_from', 'resharded_from', 'converted_from', "
            "'quantised_from', 'distilled_from')",
            name=op.f("ck_lineage_edge_relation"),
        ),
        sa.CheckConstraint("child_id <> parent_id", name=op.f("ck_lineage_edge_not_its_own_parent")),
        sa.ForeignKeyConstraint(
            ["parent_project_id", "parent_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_lineage_edge_parent_project_id_parent_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "child_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_lineage_edge_project_id_child_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("project_id", "child_id", "parent_id", "relation", name=op.f("pk_lineage_edge")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("lineage_edge", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_lineage_edge_parent_project_id_parent_id"), ["parent_project_id", "parent_id"], unique=False
        )

    op.create_table(
        "piece",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("presence", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("evidence", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("position_evidence", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("moment", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.CheckConstraint(
            "name IN ('weights', 'optimizer', 'data_position', 'random_state')", name=op.f("ck_piece_name")
        ),
        sa.CheckConstraint("position_evidence IN ('state', 'counter')", name=op.f("ck_piece_position_evidence")),
        sa.CheckConstraint("presence IN ('present', 'absent', 'unknown')", name=op.f("ck_piece_presence")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_piece_project_id_checkpoint_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("project_id", "checkpoint_id", "name", name=op.f("pk_piece")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "replica",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("uri", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("tier", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("host", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("file_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("digest_algorithm", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("digest", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("manifest_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("state", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("verification", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("verified_at", UtcTime(), nullable=True),
        sa.Column("managed", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", UtcTime(), nullable=False),
        sa.CheckConstraint(
            "state IN ('present', 'partial', 'removed', 'removed_elsewhere')", name=op.f("ck_replica_state")
        ),
        sa.CheckConstraint("tier IN ('local', 'shared', 'object')", name=op.f("ck_replica_tier")),
        sa.CheckConstraint(
            "verification IN ('unverified', 'verified', 'corrupt')", name=op.f("ck_replica_verification")
        ),
        sa.CheckConstraint("(digest_algorithm IS NULL) = (digest IS NULL)", name=op.f("ck_replica_digest")),
        sa.CheckConstraint("bytes >= 0 AND file_count >= 0", name=op.f("ck_replica_sizes")),
        sa.ForeignKeyConstraint(["manifest_id"], ["manifest.id"], name=op.f("fk_replica_manifest_id_manifest")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_replica_project_id_checkpoint_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replica")),
        sa.UniqueConstraint("project_id", "checkpoint_id", "uri", name=op.f("uq_replica_project_id_checkpoint_id_uri")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_replica_project_id_id")),
    )
    with op.batch_alter_table("replica", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_replica_manifest_id"), ["manifest_id"], unique=False)

    op.create_table(
        "alias_move",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("alias_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("previous_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("reason", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("moved_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("moved_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "alias_id"],
            ["alias.project_id", "alias.id"],
            name=op.f("fk_alias_move_project_id_alias_id_alias"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_alias_move_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "previous_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_alias_move_project_id_previous_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alias_move")),
    )
    with op.batch_alter_table("alias_move", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_alias_move_project_id_alias_id_id"), ["project_id", "alias_id", "id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_alias_move_project_id_checkpoint_id"), ["project_id", "checkpoint_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_alias_move_project_id_previous_id"), ["project_id", "previous_id"], unique=False
        )

    op.create_table(
        "replica_part",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "replica_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("host", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("ranks", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("uri", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("save_id", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.CheckConstraint("bytes >= 0", name=op.f("ck_replica_part_bytes")),
        sa.ForeignKeyConstraint(
            ["project_id", "replica_id"],
            ["replica.project_id", "replica.id"],
            name=op.f("fk_replica_part_project_id_replica_id_replica"),
        ),
        sa.PrimaryKeyConstraint("project_id", "replica_id", "host", name=op.f("pk_replica_part")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "score",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("digest", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("special", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("stderr", sa.Double(), nullable=True),
        sa.Column("evaluated_at", UtcTime(), nullable=True),
        sa.Column("arrival", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("replica_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.CheckConstraint("special IN ('NaN', 'Infinity', '-Infinity')", name=op.f("ck_score_special")),
        sa.CheckConstraint("value IS NULL OR special IS NULL", name=op.f("ck_score_value_or_special")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_score_project_id_checkpoint_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "replica_id"],
            ["replica.project_id", "replica.id"],
            name=op.f("fk_score_project_id_replica_id_replica"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "series_id"],
            ["score_series.project_id", "score_series.id"],
            name=op.f("fk_score_project_id_series_id_score_series"),
        ),
        sa.PrimaryKeyConstraint("project_id", "checkpoint_id", "series_id", "digest", name=op.f("pk_score")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("score", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_score_project_id_replica_id"),
            ["project_id", "replica_id"],
            unique=False,
            sqlite_where=sa.text("replica_id IS NOT NULL"),
            postgresql_where=sa.text("replica_id IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_score_project_id_series_id_checkpoint_id"),
            ["project_id", "series_id", "checkpoint_id"],
            unique=False,
        )

    # attempt and checkpoint point at each other. SQLite took the key above, ahead of its target.
    if op.get_bind().dialect.name == "postgresql":
        op.create_foreign_key(
            op.f("fk_attempt_project_id_resumed_from_checkpoint_id_checkpoint"),
            "attempt",
            "checkpoint",
            ["project_id", "resumed_from_checkpoint_id"],
            ["project_id", "id"],
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(
            op.f("fk_attempt_project_id_resumed_from_checkpoint_id_checkpoint"), "attempt", type_="foreignkey"
        )
    with op.batch_alter_table("score", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_score_project_id_series_id_checkpoint_id"))
        batch_op.drop_index(batch_op.f("ix_score_project_id_replica_id"))

    op.drop_table("score")
    op.drop_table("replica_part")
    with op.batch_alter_table("alias_move", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_alias_move_project_id_previous_id"))
        batch_op.drop_index(batch_op.f("ix_alias_move_project_id_checkpoint_id"))
        batch_op.drop_index(batch_op.f("ix_alias_move_project_id_alias_id_id"))

    op.drop_table("alias_move")
    with op.batch_alter_table("replica", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_replica_manifest_id"))

    op.drop_table("replica")
    op.drop_table("piece")
    with op.batch_alter_table("lineage_edge", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_lineage_edge_parent_project_id_parent_id"))

    op.drop_table("lineage_edge")
    with op.batch_alter_table("current_score", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_current_score_project_id_score_metric_id_value_checkpoint_id"))

    op.drop_table("current_score")
    with op.batch_alter_table("checkpoint_tag", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_checkpoint_tag_project_id_name_value_checkpoint_id"))

    op.drop_table("checkpoint_tag")
    with op.batch_alter_table("checkpoint_metric", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_checkpoint_metric_project_id_name_value_checkpoint_id"))

    op.drop_table("checkpoint_metric")
    with op.batch_alter_table("alias", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_alias_project_id_checkpoint_id"))

    op.drop_table("alias")
    op.drop_table("series_chunk")
    with op.batch_alter_table("checkpoint", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_checkpoint_saved_at_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_saved_at_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_layout_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_environment_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_data_version_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_config_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_code_version_id"))
        batch_op.drop_index(batch_op.f("ix_checkpoint_project_id_attempt_id_step"))

    op.drop_table("checkpoint")
    op.drop_table("attempt_skip")
    op.drop_table("tracker_link")
    with op.batch_alter_table("score_series", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_score_series_project_id_score_metric_id"))

    op.drop_table("score_series")
    with op.batch_alter_table("run_tag", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_run_tag_project_id_name_value_run_id"))

    op.drop_table("run_tag")
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempt_project_id_resumed_from_checkpoint_id"))
        batch_op.drop_index("ix_attempt_waiting")
        batch_op.drop_index(batch_op.f("ix_attempt_project_id_layout_id"))
        batch_op.drop_index(batch_op.f("ix_attempt_project_id_environment_id"))
        batch_op.drop_index(batch_op.f("ix_attempt_project_id_config_id"))

    op.drop_table("attempt")
    op.drop_table("score_metric")
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_run_project_id_config_id"))

    op.drop_table("run")
    op.drop_table("data_source")
    with op.batch_alter_table("config_entry", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_config_entry_project_id_path_number_config_id"))

    op.drop_table("config_entry")
    with op.batch_alter_table("web_session", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_web_session_token_id"))

    op.drop_table("web_session")
    with op.batch_alter_table("token_project", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_token_project_project_id"))

    op.drop_table("token_project")
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_outbox_waiting",
            sqlite_where=sa.text("delivered_at IS NULL"),
            postgresql_where=sa.text("delivered_at IS NULL"),
        )
        batch_op.drop_index(batch_op.f("ix_outbox_project_id"))

    op.drop_table("outbox")
    with op.batch_alter_table("login_code", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_login_code_token_id"))

    op.drop_table("login_code")
    op.drop_table("layout")
    op.drop_table("environment")
    op.drop_table("data_version")
    op.drop_table("config")
    op.drop_table("code_version")
    op.drop_table("benchmark")
    with op.batch_alter_table("audit_entry", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_audit_entry_subject_id"))
        batch_op.drop_index(batch_op.f("ix_audit_entry_project_id_id"))

    op.drop_table("audit_entry")
    op.drop_table("token")
    op.drop_table("project")
    op.drop_table("manifest")
