"""samples, bisects and decision records

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

from registry.db import UtcTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "decision",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("other_project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("kind", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("kind IN ('compare', 'rollback', 'search')", name=op.f("ck_decision_kind")),
        sa.ForeignKeyConstraint(
            ["other_project_id"], ["project.id"], name=op.f("fk_decision_other_project_id_project")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_decision_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index(op.f("ix_decision_other_project_id"), "decision", ["other_project_id"], unique=False)
    op.create_index(op.f("ix_decision_project_id_id"), "decision", ["project_id", "id"], unique=False)
    op.create_table(
        "item_set",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("count > 0", name=op.f("ck_item_set_count")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_item_set_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_set")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_item_set_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_item_set_project_id_id")),
    )
    op.create_table(
        "bisect",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("good_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("bad_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("benchmark", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("metric", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("filter", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("capability", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("good_level", sa.Double(), nullable=False),
        sa.Column("bad_level", sa.Double(), nullable=False),
        sa.Column("good_stderr", sa.Double(), nullable=False),
        sa.Column("bad_stderr", sa.Double(), nullable=False),
        sa.Column("drop_size", sa.Double(), nullable=False),
        sa.Column("discordance", sa.Double(), nullable=False),
        sa.Column("path", sa.LargeBinary(), nullable=False),
        sa.Column("created_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("(benchmark IS NULL) <> (capability IS NULL)", name=op.f("ck_bisect_target")),
        sa.CheckConstraint("discordance > 0 AND discordance <= 1", name=op.f("ck_bisect_discordance")),
        sa.CheckConstraint("drop_size > 0", name=op.f("ck_bisect_drop_size")),
        sa.ForeignKeyConstraint(
            ["project_id", "bad_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_bisect_project_id_bad_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "good_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_bisect_project_id_good_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bisect")),
        sa.UniqueConstraint("project_id", "digest", name=op.f("uq_bisect_project_id_digest")),
        sa.UniqueConstraint("project_id", "id", name=op.f("uq_bisect_project_id_id")),
    )
    op.create_index(op.f("ix_bisect_project_id_bad_id"), "bisect", ["project_id", "bad_id"], unique=False)
    op.create_index(op.f("ix_bisect_project_id_good_id"), "bisect", ["project_id", "good_id"], unique=False)
    op.create_table(
        "suspect_test",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("baseline_project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("baseline_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("candidate_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("change", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("verdict", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("branch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("note", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=True),
        sa.Column("created_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("verdict <> 'confirmed' OR branch_id IS NOT NULL", name=op.f("ck_suspect_test_branch")),
        sa.CheckConstraint("verdict IN ('confirmed', 'cleared')", name=op.f("ck_suspect_test_verdict")),
        sa.ForeignKeyConstraint(
            ["baseline_project_id", "baseline_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_suspect_test_baseline_project_id_baseline_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "branch_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_suspect_test_project_id_branch_id_checkpoint"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "candidate_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_suspect_test_project_id_candidate_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suspect_test")),
    )
    op.create_index(
        op.f("ix_suspect_test_baseline_project_id_baseline_id"),
        "suspect_test",
        ["baseline_project_id", "baseline_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_suspect_test_project_id_branch_id"), "suspect_test", ["project_id", "branch_id"], unique=False
    )
    op.create_index(
        op.f("ix_suspect_test_project_id_candidate_id"), "suspect_test", ["project_id", "candidate_id"], unique=False
    )
    op.create_table(
        "bisect_observation",
        sa.Column(
            "project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "bisect_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column(
            "checkpoint_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("digest", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("stderr", sa.Double(), nullable=True),
        sa.Column("n_samples", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("arrival", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_by", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("stderr >= 0 AND n_samples > 0", name=op.f("ck_bisect_observation_sizes")),
        sa.ForeignKeyConstraint(
            ["project_id", "bisect_id"],
            ["bisect.project_id", "bisect.id"],
            name=op.f("fk_bisect_observation_project_id_bisect_id_bisect"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id"],
            ["checkpoint.project_id", "checkpoint.id"],
            name=op.f("fk_bisect_observation_project_id_checkpoint_id_checkpoint"),
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "bisect_id", "checkpoint_id", "digest", name=op.f("pk_bisect_observation")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_bisect_observation_project_id_checkpoint_id"),
        "bisect_observation",
        ["project_id", "checkpoint_id"],
        unique=False,
    )
    op.create_table(
        "sample_result",
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
        sa.Column("item_set_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("encoding", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("arrival", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.CheckConstraint("encoding IN ('bits', 'float64')", name=op.f("ck_sample_result_encoding")),
        sa.ForeignKeyConstraint(
            ["project_id", "checkpoint_id", "series_id", "digest"],
            ["score.project_id", "score.checkpoint_id", "score.series_id", "score.digest"],
            name=op.f("fk_sample_result_project_id_checkpoint_id_series_id_digest_score"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "item_set_id"],
            ["item_set.project_id", "item_set.id"],
            name=op.f("fk_sample_result_project_id_item_set_id_item_set"),
        ),
        sa.PrimaryKeyConstraint("project_id", "checkpoint_id", "series_id", "digest", name=op.f("pk_sample_result")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_sample_result_project_id_item_set_id"), "sample_result", ["project_id", "item_set_id"], unique=False
    )


def downgrade() -> None:
    op.drop_table("suspect_test")
    op.drop_table("sample_result")
    op.drop_table("bisect_observation")
    op.drop_table("bisect")
    op.drop_table("item_set")
    op.drop_table("decision")
