"""The digest of a registration: it is kept, so it must say the same in every version."""

from dataclasses import replace
from datetime import UTC, datetime

from registry.checkpoints.registration import (
    FIELDS,
    ParentSpec,
    PartSpec,
    PieceSpec,
    Registration,
    ReplicaSpec,
    content_digest,
    digest_as_sent,
    given_fields,
)
from registry.evals.scores import NewScore
from registry.snapshots import CodeSpec, DataSpec, LayoutSpec, SourceSpec
from registry.strict_json import Decimal

FULL = Registration(
    step=500,
    saved_at=datetime(2026, 11, 1, 12, 30, tzinfo=UTC),
    tokens_seen=0,
    epoch=0.0,
    loss=float("nan"),
    lr=Decimal("1e-3"),
    metrics={"grad_norm": Decimal("1.50"), "z_loss": float("inf")},
    scores=(
        NewScore("mmlu", 0.5, "acc", n_shot=5, evaluated_at=datetime(2026, 11, 2, tzinfo=UTC), replica_id=7),
        NewScore("gsm8k", Decimal("0.10"), stderr=0.01, comparability={"judge": {"name": "x"}}),
    ),
    data_version=DataSpec("mix-v1", {"web": SourceSpec(0.7), "code": SourceSpec(0.3, 10)}, "s3://data/v1"),
    data_cursor={"shard": [1, 2, {"at": None}]},
    code=CodeSpec("abc", dirty=False),
    config={"optimizer": {"betas": [Decimal("0.90"), 0.95], "name": "adamw"}, "seed": 0, "empty": {}},
    environment={"torch": "2.9"},
    layout=LayoutSpec(8, tp=2, extra={"order": ["tp", "dp"]}),
    format="dcp",
    pieces={"weights": PieceSpec(), "optimizer": PieceSpec("absent", "no files")},
    replicas=(ReplicaSpec("s3://a", "object", parts=(PartSpec("h1", "4-7", "/b"), PartSpec("h0", "0-3", "/a"))),),
    parents=(ParentSpec(12),),
    save_seconds=1.5,
    tags={"phase": "sft", "数": "学"},
    notes="",
)
# As every version so far has written it; a change here would refuse the repeats of what is recorded.
DIGEST = (
    "d3c0b5cead3667e4842b7d9d43cddf75f1f07cda648fc888f4e02621e2028d39150d18ede517ffd273287d3624c1f2e8"
    "468667be62314aadace293a9a9de77bdfeac8e3af14074529c8ce34578cf3fc64fc331185f5298aec4afb58d836c38fd"
    "a48eb95a4c5c18e1448bbee2866b4a4a00000000000000009a686a111523a9aac331e9f0392256dae6bc1b2d2e8e6e21"
    "7a148f2c63572d35000000000000000058d5933f585ba54f00000000000000000000000000000000"
)


def test_the_digest_of_a_registration_is_that_of_every_version_before() -> None:
    assert content_digest(FULL).hex() == DIGEST


def test_zero_is_given_and_nothing_is_not() -> None:
    unsaid = {"stall_seconds", "milestone", "notes", "format_version"}
    assert given_fields(content_digest(FULL)) == set(FIELDS) - unsaid
    assert content_digest(Registration(step=1)) == content_digest(Registration(step=2, tags={}, notes="", scores=()))
    assert given_fields(content_digest(Registration(step=1, code=CodeSpec()))) == {"code"}


def test_the_order_of_scores_parts_and_keys_does_not_count() -> None:
    turned = replace(
        FULL,
        scores=FULL.scores[::-1],
        tags=dict(sorted(FULL.tags.items(), reverse=True)),
        replicas=tuple(replace(each, parts=each.parts[::-1]) for each in FULL.replicas),
    )
    assert content_digest(turned) == content_digest(FULL)


def test_a_member_that_is_sent_twice_counts_once() -> None:
    doubled = replace(FULL, scores=(*FULL.scores, FULL.scores[0]), replicas=FULL.replicas * 2, parents=FULL.parents * 3)
    assert content_digest(doubled) == content_digest(FULL)
    assert digest_as_sent(doubled) != content_digest(FULL)
    assert digest_as_sent(FULL) == content_digest(FULL)


def test_a_piece_said_to_be_unknown_is_one_that_is_left_out() -> None:
    said = replace(FULL, pieces={**FULL.pieces, "random_state": PieceSpec("unknown")})
    assert content_digest(said) == content_digest(FULL)
    why = replace(FULL, pieces={**FULL.pieces, "random_state": PieceSpec("unknown", "no such file")})
    assert content_digest(why) != content_digest(FULL)
