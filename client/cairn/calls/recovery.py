"""Restoring and resuming, and what lies in storage."""

from collections.abc import Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, RunLike, given, id_of, segment
from cairn.reading import build
from cairn.types import Manifest, RestorePlan, ResumeAgreement, ResumePlan, StorageUsage

DEGREES = ("world_size", "tp", "pp", "dp", "cp", "ep")


class RecoveryCalls(Calls):
    """From which copy, which checkpoint, and the same one on every host."""

    def restore_plan(
        self,
        checkpoint: CheckpointLike,
        *,
        layout: Mapping[str, int] | None = None,
        rto_seconds: float | None = None,
        hosts: Sequence[str] = (),
    ) -> RestorePlan:
        """The fastest feasible copy with its predicted time, and what of the checkpoint the layout can load.

        `layout` is that of today, such as `{"tp": 4, "pp": 2, "dp": 8}`; `hosts` are the nodes that are there, which
        local copies need.
        """
        degrees = [f"{name}={layout[name]}" for name in DEGREES if layout and layout.get(name) is not None]
        path = f"/checkpoints/{segment(id_of(checkpoint))}/restore-plan"
        return self._get(
            RestorePlan, path, layout=",".join(degrees) or None, rto_seconds=rto_seconds, host=list(hosts) or None
        )

    def resume_plan(
        self,
        run: RunLike,
        *,
        layout: Mapping[str, Any] | None = None,
        rto_seconds: float | None = None,
        require: Sequence[str] | None = None,
        hosts: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
        skip: Sequence[CheckpointLike] = (),
        limit: int | None = None,
    ) -> ResumePlan:
        """Which checkpoints a launch can go on from, the newest first, and why newer ones were passed over.

        `require` names the pieces that must be there: optimizer and data_position unless said, the weights always.
        `config` is today's: a data position that is a counter holds only while data, seed and batch size are equal.
        """
        body = given(
            layout=layout,
            rto_seconds=rto_seconds,
            require=None if require is None else list(require),
            hosts=list(hosts) or None,
            config=config,
            skip=[id_of(each) for each in skip] or None,
            limit=limit,
        )
        return build(ResumePlan, self._send("POST", f"/runs/{segment(id_of(run))}/resume-plan", body, idempotent=True))

    def agree_to_resume(
        self,
        run: RunLike,
        *,
        key: str,
        host: str,
        hosts: int,
        checkpoint: CheckpointLike | None = None,
        instead_of: CheckpointLike | None = None,
        reason: str | None = None,
    ) -> ResumeAgreement:
        """What this host can read, so that all hosts of the launch `key` load the same; ask again for how it stands.

        `checkpoint` None says that it can read nothing, which ends the launch for all.
        """
        body = given(
            key=key,
            host=host,
            hosts=hosts,
            checkpoint_id=None if checkpoint is None else id_of(checkpoint),
            instead_of=None if instead_of is None else id_of(instead_of),
            reason=reason,
        )
        path = f"/runs/{segment(id_of(run))}/resume-agreements"
        return build(ResumeAgreement, self._send("POST", path, body, idempotent=True))

    def storage_usage(
        self, *, project: str | None = None, run: RunLike | None = None, limit: int | None = None
    ) -> StorageUsage:
        """Bytes by run, tier and state; of a project, of a run, or of all that the token may see."""
        number = None if run is None else id_of(run)
        return self._get(StorageUsage, "/storage/usage", project=project, run_id=number, limit=limit)

    def manifest(self, replica_id: str) -> Manifest:
        """The files of a copy, where it was recorded with them. Raises `NotFound`."""
        return self._get(Manifest, f"/replicas/{segment(replica_id)}/manifest")
