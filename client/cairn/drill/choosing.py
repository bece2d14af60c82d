"""Which copy of a checkpoint is drilled: the one that is named, else the fastest that can be restored here."""

from dataclasses import dataclass

from cairn.client import Client
from cairn.drill.reachable import out_of_reach, store_of
from cairn.errors import NotFound
from cairn.resume.reach import path_of
from cairn.types import Checkpoint, CopyOption, Manifest, RestorePlan


class NothingToDrill(NotFound):
    """No copy can be tried from this host, which says nothing about any of them."""


@dataclass(frozen=True)
class Target:
    """A copy to rehearse with. `path`: where this host finds it, a path or a URL. `remark`: what to know of it.
    `own_disk`: it is recorded as on a disk of this host."""

    checkpoint: Checkpoint
    copy: CopyOption
    path: str
    manifest: Manifest | None
    remark: str = ""
    own_disk: bool = False

    @property
    def name(self) -> str:
        """As a command line names it."""
        ref = self.checkpoint
        return f"{ref.project}/{ref.run.name}@{ref.attempt}.{ref.step}" if ref.run is not None else ref.id

    @property
    def step(self) -> int:
        return self.checkpoint.step or 0


def choose_copy(
    client: Client,
    checkpoint: Checkpoint,
    host: str,
    replica_id: str | None = None,
    shut: "dict[str, str] | None" = None,
) -> Target:
    """Raises `NothingToDrill` where no copy, or not the one that is named, can be tried here.

    Only what this host could never read is passed over. A copy that should be here and cannot be read is chosen: that
    it cannot is what a drill is for. `shut` remembers stores that let nothing be read, with why.
    """
    plan = client.restore_plan(checkpoint, hosts=[host])
    copies = [each for each in plan.copies if replica_id in (None, each.replica_id)]
    if not copies:
        what = "no copy of it is recorded" if replica_id is None else f"it has no copy {replica_id}"
        raise NothingToDrill(f"Nothing to drill: {what}.", code="nothing-to-drill")
    told, refused = ["No copy can be drilled here."], False
    for each in copies:
        own_disk, path = _holder(each) == host, path_of(each.uri)
        why = _elsewhere(each, host)
        if not why and not each.feasible and replica_id is None:
            why, refused = each.reason, True
        why = why or _shut(path, own_disk, {} if shut is None else shut)
        if not why:
            return Target(checkpoint, each, path, _manifest(client, each), _remark(plan, each), own_disk)
        told.append(f"  {each.uri} ({each.replica_id}): {why}")
    if refused:
        told.append("--replica ID drills one all the same.")
    raise NothingToDrill("\n".join(told), code="nothing-to-drill")


def _shut(path: str, own_disk: bool, shut: dict[str, str]) -> str:
    """Why this host cannot read there; a store that refused once is not asked again."""
    store = store_of(path)
    if store not in shut:
        why = out_of_reach(path, own_disk=own_disk)
        if not why or not store:
            return why
        shut[store] = why
    return shut[store]


def _holder(copy: CopyOption) -> str | None:
    """The host on whose disks it is; None for what is shared."""
    if copy.tier != "local":
        return None
    return copy.parts[0].host if copy.parts else copy.host


def _elsewhere(copy: CopyOption, host: str) -> str:
    if len(copy.parts) > 1:
        return "it is spread over the disks of several hosts, and no single one can rehearse with it"
    holder = _holder(copy)
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
