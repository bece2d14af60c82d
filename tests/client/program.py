"""`cairn` as a process of its own."""

import sys
from pathlib import Path

CAIRN = [str(Path(sys.executable).with_name("cairn"))]
# Waits for the service as long as a busy machine takes, where a user's job would go on and leave the rest to the next.
PATIENT = [
    sys.executable,
    "-c",
    """
import sys
from cairn import identity
from cairn.cli import main
from cairn.resume import waiting
from cairn.supervise import job, sending
job.FLUSH_SECONDS = sending.TIMEOUT_SECONDS = identity.PROOF_SECONDS = 60.0
waiting.send_waiting.__defaults__ = (60.0,)
sys.exit(main())
""",
]
