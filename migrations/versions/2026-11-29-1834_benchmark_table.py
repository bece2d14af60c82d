"""the benchmark table of a project

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "population_change",
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("subject_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_population_change_project_id_project")),
        sa.PrimaryKeyConstraint("project_id", "subject_id", name=op.f("pk_population_change")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_population_change_position"), "population_change", ["position"])
    for name in ("same_as", "note"):
        op.add_column("benchmark", sa.Column(name, sa.String().with_variant(sa.String(collation="C"), "postgresql")))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("current_score", sa.Column("via_checkpoint_id", number))
    lent = sa.text("via_checkpoint_id IS NOT NULL")
    op.create_index(
        op.f("ix_current_score_project_id_score_metric_id_checkpoint_id"),
        "current_score",
        ["project_id", "score_metric_id", "checkpoint_id"],
        sqlite_where=lent,
        postgresql_where=lent,
    )
    _lend_to_copies()


def _lend_to_copies() -> None:
    """What was evaluated before this revision counts for lossless copies from now on, one edge away and both ways.

    Farther copies follow with the next score of theirs (registry.evals.copies).
    """
    for mine, other in (("child_id", "parent_id"), ("parent_id", "child_id")):
        op.execute(
            f"""
            INSERT INTO current_score (project_id, checkpoint_id, score_metric_id, series_id, value, special, stderr,
                                       evaluated_micros, arrival, via_checkpoint_id)
            SELECT score.project_id, edge.{mine}, score.score_metric_id, score.series_id, score.value, score.special,
                   score.stderr, score.evaluated_micros, score.arrival, score.checkpoint_id
            FROM lineage_edge AS edge
            JOIN current_score AS score
              ON score.project_id = edge.project_id AND score.checkpoint_id = edge.{other}
            WHERE edge.relation IN ('resharded_from', 'converted_from') AND edge.parent_project_id = edge.project_id
              AND score.via_checkpoint_id IS NULL
            ON CONFLICT DO NOTHING
            """  # noqa: S608 - both are names of columns, from the line above
        )


def downgrade() -> None:
    op.execute("DELETE FROM current_score WHERE via_checkpoint_id IS NOT NULL")
    op.drop_index(op.f("ix_current_score_project_id_score_metric_id_checkpoint_id"), table_name="current_score")
    op.drop_column("current_score", "via_checkpoint_id")
    for name in ("note", "same_as"):
        op.drop_column("benchmark", name)
    op.drop_index(op.f("ix_population_change_position"), table_name="population_change")
    op.drop_table("population_change")
