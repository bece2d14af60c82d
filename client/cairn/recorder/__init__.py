"""The recorder: what a training loop calls. It never slows, blocks or stops training.

    run = cairn.start(project="llm", run="7b-v3", config=config, data={"web": 0.6, "code": 0.4})
    run.log(step, loss=loss, lr=lr)
    run.saving(step)
    run.saved(path, step=step, loss=loss, tokens=tokens, cursor=loader.state_dict())
    run.finish()

Calls leave a record in a spool on disk (`cairn.spool`) and return; everything that takes time (git, the environment,
reading the folder, the network) happens in threads of `cairn.recorder.engine`.
"""

from cairn.recorder.run import Recorder
from cairn.recorder.silent import Silent
from cairn.recorder.start import resume_receipt, start

__all__ = ["Recorder", "Silent", "resume_receipt", "start"]
