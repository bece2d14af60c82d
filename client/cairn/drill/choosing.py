"""Which copy of a checkpoint is drilled: the one that is named, else the fastest that can be restored here."""

from dataclasses import dataclass

from cairn.client import Client
from cairn.errors import NotFound
from cairn.resume.reach import path_of
from cairn.types import Checkpoint, CopyOption, Manifest, RestorePlan


class NothingToDrill(NotFound):
    """No copy can be tried from this host, which says nothing about any of them."""


@dataclass(frozen=True)
class Target:
    """A copy to rehearse with. `path`: where this host finds it, a path or a URL. `remark`: what to know of it."""

    checkpoint: Checkpoint
    copy: CopyOption
    path: str
    manifest: Manifest | None
    remark: str = ""

    @property
    def name(self) -> str:
        """As a command line names it."""
        ref = self.checkpoint
        return f"{ref.project}/{ref.run.name}@{ref.attempt}.{ref.step}" if ref.run is not None else ref.id

    @property
    def step(self) -> int:
        return self.checkpoint.step or 0


def choose_copy(client: Client, checkpoint: Checkpoint, host: str, replica_id: str | None = None) -> Target:
    """Raises `NothingToDrill` where no copy, or not the one that is named, can be tried here.

    Only what this host could never read is passed over. A copy that should be here and cannot be read is chosen: that
    it cannot is what a drill is for.
    """
    plan = client.restore_plan(checkpoint, hosts=[host])
    copies = [each for each in plan.copies if replica_id in (None, each.replica_id)]
    if not copies:
        what = "no copy of it is recorded" if replica_id is None else f"it has no copy {replica_id}"
        raise NothingToDrill(f"Nothing to drill: {what}.", code="nothing-to-drill")
    passed_over = []
    for each in copies:
        why = _elsewhere(each, host) or ("" if each.feasible or replica_id is not None else each.reason)
        if not why:
            return Target(checkpoint, each, path_of(each.uri), _manifest(client, each), _remark(plan, each))
        passed_over.append(f"{each.uri} ({each.replica_id}): {why}")
    told = "\n  ".join(passed_over)
    raise NothingToDrill(
        f"No copy can be drilled here.\n  {told}\n--replica ID drills one all the same.", code="nothing-to-drill"
    )


def _elsewhere(copy: CopyOption, host: str) -> str:
    if len(copy.parts) > 1:
        return "it is spread over the disks of several hosts, and no single one can rehearse with it"
    holder = copy.parts[0].host if copy.parts else copy.host
    return f"it is on the disks of {holder}, and this is {host}" if copy.tier == "local" and holder != host else ""


def _remark(plan: RestorePlan, copy: CopyOption) -> str:
    if not copy.feasible:
        return f"The plan would not take this copy: {copy.reason}"
    return f"The plan would not load this checkpoint: {plan.obstacle}" if plan.obstacle else ""


def _manifest(client: Client, copy: CopyOption) -> Manifest | None:
    try:
        return client.manifest(copy.replica_id) if copy.has_manifest else None
    except NotFound:
        return None
