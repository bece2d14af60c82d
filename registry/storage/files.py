"""The files of a copy, as its manifest lists them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.errors import NotFound
from registry.ids import to_text
from registry.models import Manifest, Replica


class ReplicaNotFound(NotFound):
    code = "replica-not-found"
    title = "No such copy"


class NoManifest(NotFound):
    code = "no-manifest"
    title = "The files of this copy are not listed"


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """`files`: (path, bytes, digest or None), in the order of their paths. `digest` is that of the whole."""

    replica_id: int
    uri: str
    algorithm: str | None
    digest: str | None
    files: Sequence[tuple[str, int, str | None]]


def project_of_replica(session: Session, replica_id: int) -> int:
    """Raises ReplicaNotFound."""
    found = session.scalar(select(Replica.project_id).where(Replica.id == replica_id))
    if found is None:
        raise ReplicaNotFound(
            f"There is no copy {to_text(replica_id)}. GET /api/v1/checkpoints/{{id}} lists its copies."
        )
    return found


def read_manifest(session: Session, project_id: int, replica_id: int) -> ManifestRow:
    """Raises NoManifest where the copy was recorded without one."""
    query = (
        select(Replica.uri, Replica.digest_algorithm, Replica.digest, Manifest.body)
        .outerjoin(Manifest, Manifest.id == Replica.manifest_id)
        .where(Replica.project_id == project_id, Replica.id == replica_id)
    )
    row = session.execute(query).one()
    if row.body is None:
        raise NoManifest(f"Copy {to_text(replica_id)} was recorded without a list of its files.")
    files = [(path, size, rest[0] if rest else None) for path, size, *rest in strict_json.unpack(row.body)]
    return ManifestRow(replica_id, row.uri, row.digest_algorithm, row.digest, files)
