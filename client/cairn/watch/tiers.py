"""Whether a folder is on a disk of this host or on a file system that several hosts share, as the system mounts it."""

import os

SHARED = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "lustre",
            "gpfs",
            "beegfs",
            "ceph",
            "glusterfs",
            "afs",
            "9p",
            "wekafs",
            "panfs",
        ),
        *(
            "fuse.glusterfs",
            "fuse.sshfs",
            "fuse.s3fs",
            "fuse.gcsfuse",
            "fuse.juicefs",
            "fuse.ceph",
            "fuse.mountpoint-s3",
        ),
        *("orangefs", "pvfs2", "ocfs2", "gfs2", "daos", "fuse.dfuse", "vastnfs", "virtiofs"),
    }
)


def tier_of(path: str, mounts: str = "/proc/mounts") -> str | None:
    """`shared` or `local`; None where the system does not say."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            found = [line.split() for line in file]
    except OSError:
        return None
    real = os.path.realpath(path)
    best: tuple[int, str] | None = None
    for parts in found:
        if len(parts) < 3:
            continue
        point = parts[1].replace("\\040", " ").rstrip("/") or "/"
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) >= best[0]):
            best = (len(point), parts[2])
    if best is None:
        return None
    return "shared" if best[1] in SHARED else "local"
