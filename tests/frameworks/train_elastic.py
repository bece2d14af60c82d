"""A worker of torchrun that goes on from the newest save of its folder, and ends once it has what it waits for.

torchrun ... train_elastic.py FOLDER WORLD_SIZE [die]: ends after three steps among WORLD_SIZE workers; `die`: the first
formation fails after them instead.
"""

import os
import sys
import time
from pathlib import Path

import cairn
import torch.distributed

folder, wanted, dies = Path(sys.argv[1]), int(sys.argv[2]), "die" in sys.argv[3:]
torch.distributed.init_process_group("gloo")
size, restarts = torch.distributed.get_world_size(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
step = max((int(each.name) for each in folder.iterdir()), default=0)
run = cairn.start("llm", "tiny", capture={"git": False, "libraries": False, "machine": False})
done = 0
while size != wanted or done < 3:
    torch.distributed.barrier()
    step, done = step + 1, done + 1
    if torch.distributed.get_rank() == 0:
        run.log(step, loss=1.0 / step)
        (folder / str(step)).touch()
        run.saved(step=step)
    if dies and done == 3 and restarts == 0:
        sys.exit("a worker fails")
    time.sleep(0.2)
run.finish()
