"""What can be wrong with a checkpoint, or with a batch of them."""

from registry.errors import Conflict, Invalid, NotFound


class CheckpointNotFound(NotFound):
    code = "checkpoint-not-found"
    title = "No such checkpoint"


class CheckpointExists(Conflict):
    code = "checkpoint-exists"
    title = "This step is already recorded, with other content"


class CheckpointDeleted(Conflict):
    code = "checkpoint-deleted"
    title = "This checkpoint was deleted"


class DataCursorTooLarge(Invalid):
    code = "data-cursor-too-large"
    title = "The data cursor is too large"


class SavedInTheFuture(Invalid):
    code = "saved-in-the-future"
    title = "The time of the save lies ahead of this service's"


class BatchRefused(Invalid):
    code = "batch-refused"
    title = "The batch was refused as a whole; nothing of it was kept"


class BatchInConflict(Conflict):
    code = "batch-in-conflict"
    title = "The batch was refused as a whole; nothing of it was kept"
