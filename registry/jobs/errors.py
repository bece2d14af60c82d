"""What can go wrong with a job itself, whatever its work is."""

from registry.errors import Conflict, NotFound, Unavailable


class JobNotFound(NotFound):
    code = "job-not-found"
    title = "No such job"


class JobEnded(Conflict):
    code = "job-ended"
    title = "The job has ended already"


class LeaseLost(Unavailable):
    """Another worker has the job by now: this one must stop, and write nothing more."""

    code = "job-lease-lost"
    title = "Another worker goes on with this job"


class WorkerStopping(Unavailable):
    code = "job-worker-stopping"
    title = "The worker is ending"


class JobBroke(Unavailable):
    """A fault of ours, tried again a few times."""

    code = "job-broke"
    title = "The job met a fault of the service's own"
