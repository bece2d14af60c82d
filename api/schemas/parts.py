"""Shapes that several bodies share: layout, code, data version, replicas, scores."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, field_validator

from api.schemas.common import (
    NO_NUL,
    Answer,
    Count,
    Finite,
    FreeObject,
    Id,
    Name,
    NonNegative,
    Number,
    Positive,
    Shape,
    Text,
    Time,
    Uri,
)
from registry.checkpoints.registration import FileSpec, PartSpec, PieceSpec, ReplicaSpec
from registry.checkpoints.replicas import rank_ranges
from registry.evals.scores import NewScore, split_metric
from registry.snapshots import CodeSpec, DataSpec, LayoutSpec, SourceSpec

Tags = Annotated[dict[Name, Text], Field(max_length=1_000)]
MAX_RANKS: Final = 1_000_000
Digest = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9+/=:._-]+$")]


class LayoutIn(Shape):
    """How state is split across ranks; a degree that is left out is unknown, never one."""

    world_size: Positive | None = None
    tp: Positive | None = None
    pp: Positive | None = None
    dp: Positive | None = None
    cp: Positive | None = None
    ep: Positive | None = None
    sharding: Text | None = None
    extra: FreeObject = Field(default_factory=dict)

    def to_spec(self) -> LayoutSpec:
        return LayoutSpec(**{name: getattr(self, name) for name in type(self).model_fields})


class LayoutOut(Answer):
    world_size: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    sharding: str | None
    extra: FreeObject

    @classmethod
    def from_spec(cls, spec: LayoutSpec) -> Self:
        return cls.model_construct(**{name: getattr(spec, name) for name in cls.model_fields})


class CodeIn(Shape):
    commit: Digest | None = None
    dirty: bool | None = None
    diff_digest: Digest | None = None
    remote: Text | None = None

    def to_spec(self) -> CodeSpec:
        return CodeSpec(self.commit, self.dirty, self.diff_digest, self.remote)


class CodeOut(Answer):
    commit: str | None
    dirty: bool | None
    diff_digest: str | None
    remote: str | None

    @classmethod
    def from_spec(cls, spec: CodeSpec) -> Self:
        return cls.model_construct(**{name: getattr(spec, name) for name in cls.model_fields})


class SourceIn(Shape):
    """One source of a mix: its weight (on any scale) and the tokens it holds."""

    weight: NonNegative | None = None
    tokens: Count | None = None


class DataVersionIn(Shape):
    """A data version by name, with its mix where it is known: a weight per source, or weight and tokens."""

    name: Name
    mix: Annotated[dict[Name, NonNegative | SourceIn], Field(max_length=10_000)] = Field(default_factory=dict)
    uri: Uri | None = None

    def to_spec(self) -> DataSpec:
        return DataSpec(
            self.name,
            {
                source: SourceSpec(share.weight, share.tokens) if isinstance(share, SourceIn) else SourceSpec(share)
                for source, share in self.mix.items()
            },
            self.uri,
        )


class DataVersionOut(Answer):
    name: str
    mix: dict[str, SourceIn]
    uri: str | None

    @classmethod
    def from_spec(cls, spec: DataSpec) -> Self:
        mix = {
            source: SourceIn.model_construct(weight=share.weight, tokens=share.tokens)
            for source, share in spec.mix.items()
        }
        return cls.model_construct(name=spec.name, mix=mix, uri=spec.uri)


class PieceIn(Shape):
    """A piece with what says so; `position_evidence` belongs to data_position, `moment` names the save it is of."""

    state: Literal["present", "absent", "unknown"]
    evidence: Text | None = None
    position_evidence: Literal["state", "counter"] | None = None
    moment: Text | None = None

    def to_spec(self) -> PieceSpec:
        return PieceSpec(self.state, self.evidence, self.position_evidence, self.moment)


Presence = Literal["present", "absent", "unknown"]


class PiecesIn(Shape):
    weights: Presence | PieceIn | None = None
    optimizer: Presence | PieceIn | None = None
    data_position: Presence | PieceIn | None = None
    random_state: Presence | PieceIn | None = None

    def to_specs(self) -> dict[str, PieceSpec]:
        said = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {
            name: PieceSpec(value) if isinstance(value, str) else value.to_spec()
            for name, value in said
            if value is not None
        }


class DigestIn(Shape):
    algorithm: Literal["blake3", "sha256", "xxh3-128", "crc32c"]
    value: Digest


class FileIn(Shape):
    path: Uri
    bytes: Count
    digest: Digest | None = None


class PartIn(Shape):
    """What one host holds; `ranks` such as "0-3,8"."""

    host: Name
    ranks: Annotated[str, StringConstraints(max_length=4_096, pattern=r"^\d{1,7}(-\d{1,7})?(,\d{1,7}(-\d{1,7})?)*$")]
    uri: Uri
    bytes: Count | None = None
    save_id: Name | None = None

    @field_validator("ranks")
    @classmethod
    def _upwards(cls, text: str) -> str:
        if any(not ranks for ranks in rank_ranges(text)):
            raise ValueError('expected ranks that run upwards, such as "0-3,8"')
        return text

    @property
    def rank_count(self) -> int:
        return sum(map(len, rank_ranges(self.ranks)))


class ReplicaIn(Shape):
    """One copy in one place, or spread over hosts as parts."""

    uri: Uri
    tier: Literal["local", "shared", "object"]
    host: Name | None = None
    bytes: Count | None = None
    file_count: Count | None = None
    digest: DigestIn | None = None
    manifest: Annotated[list[FileIn], Field(max_length=1_000_000)] = Field(default_factory=list)
    parts: Annotated[list[PartIn], Field(max_length=100_000)] = Field(default_factory=list)

    @field_validator("manifest")
    @classmethod
    def _each_path_once(cls, manifest: list[FileIn]) -> list[FileIn]:
        paths = [file.path for file in manifest]
        if len(set(paths)) < len(paths):
            first: dict[str, int] = {}
            again = next(at for at, path in enumerate(paths) if first.setdefault(path, at) != at)
            path = f"{paths[again][:200]!r}"
            raise ValueError(f"names {path} twice, at {first[paths[again]]} and {again}; expected each file once")
        return manifest

    @field_validator("parts")
    @classmethod
    def _not_too_many_ranks(cls, parts: list[PartIn]) -> list[PartIn]:
        if sum(part.rank_count for part in parts) > MAX_RANKS:
            raise ValueError(f"more than {MAX_RANKS} ranks in all")
        return parts

    def to_spec(self) -> ReplicaSpec:
        return ReplicaSpec(
            uri=self.uri,
            tier=self.tier,
            host=self.host,
            bytes=self.bytes,
            file_count=self.file_count,
            digest_algorithm=self.digest.algorithm if self.digest else None,
            digest=self.digest.value if self.digest else None,
            manifest=[FileSpec(file.path, file.bytes, file.digest) for file in self.manifest],
            parts=[PartSpec(part.host, part.ranks, part.uri, part.bytes, part.save_id) for part in self.parts],
        )


class ScoreIn(Shape):
    """One eval result. A harness's `metric,filter` may stand in `metric` alone; the filter `none` is none."""

    benchmark: Name
    metric: Annotated[str, StringConstraints(max_length=512, pattern=NO_NUL)] = ""
    filter: Annotated[str, StringConstraints(max_length=512, pattern=NO_NUL)] | None = None
    value: Number
    stderr: Annotated[NonNegative | None, Field()] = None
    n_samples: Positive | None = None
    n_shot: Count | None = None
    version: Name | Annotated[int, Field(ge=-(2**53), le=2**53)] | Finite | None = None
    harness: Name | None = None
    harness_version: Name | None = None
    evaluated_at: Time | None = None
    comparability: FreeObject = Field(default_factory=dict)
    replica_id: Id | None = None

    def to_score(self) -> NewScore:
        metric, filter_name = (self.metric, self.filter)
        if filter_name is None:
            metric, filter_name = split_metric(self.metric)
        elif filter_name == "none":
            filter_name = ""
        return NewScore(
            benchmark=self.benchmark,
            value=self.value,
            metric=metric,
            filter=filter_name,
            stderr=self.stderr,
            n_samples=self.n_samples,
            n_shot=self.n_shot,
            version=None if self.version is None else str(self.version),
            harness=self.harness,
            harness_version=self.harness_version,
            evaluated_at=self.evaluated_at,
            comparability=self.comparability,
            replica_id=self.replica_id,
        )
