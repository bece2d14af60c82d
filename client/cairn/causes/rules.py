"""The table of causes: what a line of a log says about why training stopped, each with a line that shows it.

The lines have the shapes that public issues, kernel logs and manuals show. ROOT says what broke. FAILURE may be the
cause or follow from one elsewhere: the first in time counts. CONSEQUENCE only tells that another process is gone.
Within a line the first rule of the table that matches speaks.
"""

import builtins
import re
from dataclasses import dataclass
from typing import Final

ROOT, FAILURE, CONSEQUENCE = 3, 2, 1


@dataclass(frozen=True)
class Rule:
    """`cause` is a name of the service's own table of causes.

    A line that has none of the `words` (lower case) is not searched for the pattern: that is fifty times faster.
    """

    cause: str
    level: int
    words: tuple[str, ...]
    pattern: "re.Pattern[str]"
    source: str
    example: str


# Which rank, process or host writes, and at which level, may stand before an exception's name.
BEGIN: Final = (
    r"^\W*(?:[\w.-]*\d[\w.-]*: )?(?:\([^)]*\) )?(?:\[[^\]]*\]:?\s*)?"
    r"(?:.{0,80}\b(?-i:ERROR|CRITICAL|FATAL)\b.{0,60}?[]|:-] )?"
)
_BUILT_IN: Final = "|".join(name for name in vars(builtins) if name.endswith(("Error", "Exception", "Exit", "Group")))
# `MeanSquaredError: 0.021` is a metric, `KeyError: 0` an exception.
RAISED: Final = (
    rf"(?-i:(?:{_BUILT_IN})(?::|\s*$)(?!\s*[Nn]one\b)"
    r"|(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Exit|Failure)|(?:errors?|exceptions?)\.[A-Z]\w*)"
    r"(?::(?!\s*[-+]?[\d.]+(?:e[-+]?\d+)?\s*%?\s*(?:[|,;].*)?$)|\s*$))"
)


def _rule(cause: str, level: int, words: str, pattern: str, source: str, example: str) -> Rule:
    return Rule(cause, level, tuple(words.split("|")), re.compile(pattern, re.IGNORECASE), source, example)


RULES: Final[tuple[Rule, ...]] = (
    # ---- power and host
    _rule(
        "power",
        ROOT,
        "power|psu|voltage",
        r"\b(power supply (ac )?(lost|fail)|psu\d* .{0,20}(fail|trip|ac lost)|emergency power (off|down)"
        r"|voltage fault|loss of ac power|power (loss|outage) detected|power input for power supply \d+ is lost)"
        r"|\b(node|rack|host|chassis|pdu)\b.{0,40}\blost power\b",
        "BMC event log",
        "ipmi-sel: Power Supply AC lost | PSU2 Status | Asserted",
    ),
    _rule(
        "host-fault",
        ROOT,
        "hardware|kernel|edac",
        r"\[Hardware Error\]: .*(machine check exception|fatal\b)|kernel panic - not syncing|EDAC MC\d+: \d+ UE\b",
        "kernel",  # without 'exception' it was corrected
        "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400",
    ),
    _rule(
        "host-fault",
        ROOT,
        "node",
        r"CANCELLED AT .{0,40}DUE TO NODE FAILURE|\bNODE_FAIL\b|srun: error: Node failure on",
        "Slurm",
        "slurmstepd: error: *** JOB 1311 ON n17 CANCELLED AT 2022-04-02T03:12:44 DUE TO NODE FAILURE ***",
    ),
    # ---- GPU
    _rule(
        "gpu-off-bus",
        ROOT,
        "fallen|xid|lost",
        r"GPU has fallen off the bus|Xid \([^)]*\): 79\b|GPU is lost\.? +Reboot|NVMLError_GpuIsLost",
        "NVIDIA driver",
        "NVRM: Xid (PCI:0000:0f:00): 79, pid=2271, GPU has fallen off the bus.",
    ),
    _rule(
        "gpu-off-bus",
        ROOT,
        "device",
        r"Unable to determine the device handle for (the )?GPU",
        "nvidia-smi",
        "Unable to determine the device handle for GPU 0000:0F:00.0: Unknown Error",
    ),
    _rule(
        "gpu-ecc",
        ROOT,
        "uncorrectable|double|xid",
        r"uncorrectable (NVLINK|ECC)|double.bit (ECC )?error|Xid \([^)]*\): (48|63|64|94|95)\b",
        "CUDA, NVIDIA driver",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ),
    _rule(
        "gpu-ecc",
        ROOT,
        "ecc|remapping|dbe",
        r"Contained ECC error|row remapping (failure|pending)|DBE \(double",
        "NVIDIA driver",
        "NVRM: GPU 0000:3b:00.0: row remapping failure, the GPU needs service",
    ),
    _rule(
        "gpu-xid",
        FAILURE,
        "xid",
        r"\bXid \([^)]*\): 45\b",
        "NVIDIA driver",  # the driver's clean-up after any process that died
        "NVRM: Xid (PCI:0000:9d:00): 45, pid=4411, name=python, Ch 00000008",
    ),
    _rule(
        "gpu-xid",
        ROOT,
        "xid|nvswitch",
        r"\bXid \([^)]*\): \d+|SXid \([^)]*\): \d+, Fatal|NVSwitch fatal error \d+",
        "NVIDIA driver",
        "NVRM: Xid (PCI:0000:84:00): 119, pid=1520, name=python, Timeout after 6s of waiting for RPC response",
    ),
    # ---- memory
    _rule(
        "gpu-memory",
        ROOT,
        "out of memory|outofmemory|out_of_memory|resource_exhausted",
        r"CUDA out of memory|OutOfMemoryError: (CUDA|HIP)|HIP out of memory|Cuda failure .{0,6}out of memory"
        r"|CUDA (driver )?error: out of memory"
        r"|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED: .*(hbm|allocat|out of memory)",
        "PyTorch",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79 GiB",
    ),
    _rule(
        "gpu-memory",
        ROOT,
        "alloc_failed",
        r"CUBLAS_STATUS_ALLOC_FAILED",
        "cuBLAS",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ),
    _rule(
        "host-memory",
        ROOT,
        "out of memory|oom",
        r"Out of memory: Kill(ed)? process|oom-kill:constraint|invoked oom-killer|Memory cgroup out of memory",
        "kernel",
        "Out of memory: Killed process 41233 (python) total-vm:1203394844kB, anon-rss:1015220kB",
    ),
    _rule(
        "host-memory",
        ROOT,
        "oom|out-of-memory|out of memory|memory limit",
        r"Detected \d+ oom.kill event|cgroup out-of-memory handler|\bOOMKilled\b|: tasks? [\d,-]+: Out Of Memory"
        r"|Exceeded (job|step) memory limit|exceeded memory limit .*being killed",
        "Slurm, Kubernetes",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=88.0. Some of the step tasks have been OOM Killed.",
    ),
    _rule(
        "host-memory",
        ROOT,
        "memory|cpuallocator",
        BEGIN + r"MemoryError\b|Cannot allocate memory|DefaultCPUAllocator: (can't|not enough)",
        "Python, PyTorch",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory: you tried to"
        " allocate 824633720832 bytes",
    ),
    _rule(
        "host-memory",
        ROOT,
        "memory",
        r"out of shared memory|insufficient shared memory",
        "PyTorch DataLoader",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    ),
    _rule(
        "host-memory",
        FAILURE,
        "dataloader",
        r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) (is|exited|was) .{0,12}(killed by signal: Killed|unexpectedly)",
        "PyTorch DataLoader",
        "RuntimeError: DataLoader worker (pid 30214) is killed by signal: Killed.",
    ),
    # ---- storage
    _rule(
        "disk-full",
        ROOT,
        "space|quota|errno",
        r"No space left on device|Disk quota exceeded|\[Errno (28|122)\]",
        "POSIX",
        "OSError: [Errno 28] No space left on device: '/scratch/ckpt/step-9000/shard-3.pt'",
    ),
    _rule(
        "stale-handle",
        ROOT,
        "stale|errno",
        r"Stale (NFS )?file handle|\[Errno 116\]",
        "NFS",
        "OSError: [Errno 116] Stale file handle: '/mnt/data/web/00041.bin'",
    ),
    _rule(
        "storage-io",
        ROOT,
        "errno|input/output|i/o|ext4|xfs|transport|read-only",
        r"\[Errno (5|30)\]|Input/output error|Read-only file system|I/O error, dev |EXT4-fs error"
        r"|XFS \(.*\): .*(I/O|metadata) error|Remote I/O error|Cannot send after transport endpoint shutdown",
        "kernel, POSIX",
        "blk_update_request: I/O error, dev nvme2n1, sector 128934 op 0x0:(READ) flags 0x80700",
    ),
    _rule(
        "storage-io",
        ROOT,
        "lustreerror|nfs|transport",
        r"\bLustreError: |nfs: server \S+ not responding|Transport endpoint is not connected",
        "Lustre, NFS, FUSE",
        "LustreError: 11-0: scratch-OST0007-osc-ffff8: operation ost_read to node 10.1.4.7@o2ib failed: rc = -5",
    ),
    _rule(
        "storage-io",
        FAILURE,  # why is told elsewhere, where it is: a full disk
        "writer|unexpected pos",
        r"PytorchStreamWriter failed writing|unexpected pos \d+ vs \d+",
        "PyTorch",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 8512 vs 8404",
    ),
    _rule(
        "corrupt-checkpoint",
        ROOT,
        "reader|central|deserial|unpickling|metadata|input",
        r"PytorchStreamReader failed|failed finding central directory|Error while deserializing header"
        r"|UnpicklingError|InvalidHeaderDeserialization|MetadataIncompleteBuffer|Ran out of input\s*$",
        "PyTorch, safetensors, pickle",
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    # ---- scheduler and people
    _rule(
        "preemption",
        ROOT,
        "preempt|spot|instance-action|taint",
        r"CANCELLED .*DUE TO PREEMPTION|\bpreempted by\b|spot (instance )?(interruption|termination)|\bwas preempted\b"
        r"|instance-action.{0,20}terminate|action\W{1,4}(terminate|stop)\b.{0,120}instance-action|TaintManagerEviction",
        "Slurm, cloud providers, Kubernetes",
        "slurmstepd: error: *** STEP 4412.0 ON gpu-18 CANCELLED AT 2024-05-01T10:11:12 DUE TO PREEMPTION ***",
    ),
    _rule(
        "scheduler-limit",
        ROOT,
        "limit|deadline",
        r"CANCELLED .*DUE TO TIME LIMIT|TERM_RUNLIMIT|walltime \S+ exceeded limit|\bJobTimeLimit\b(?!=)"
        r"|Reason: *DeadlineExceeded|longer than specified deadline",
        "Slurm, LSF, PBS, Kubernetes",
        "slurmstepd: error: *** JOB 99124 ON r7i1n3 CANCELLED AT 2021-10-09T20:00:21 DUE TO TIME LIMIT ***",
    ),
    _rule(
        "user-interrupt",
        FAILURE,
        "cancelled",
        r"\bJOB .*CANCELLED AT (?!.*DUE TO)|CANCELLED by ",
        "Slurm",
        "slurmstepd: error: *** JOB 1530 ON n1 CANCELLED AT 2022-01-04T11:02:44 ***",
    ),
    _rule(
        "user-interrupt",
        FAILURE,
        "keyboard",
        BEGIN + r"KeyboardInterrupt(:|\s*$|,? received)",
        "Python",
        "KeyboardInterrupt",
    ),
    # ---- the training itself
    _rule(
        "nan-loss",
        ROOT,
        "nan|finite|loss",
        r"found NaN in (?!0\b)|loss (is|became|was|=|:)?\s*-?nan\b|nan (loss|detected in loss)"
        r"|NaN or Inf found in (loss|grad)|non-?finite (loss|grad)|loss scale already at minimum"
        r"|Loss is nan|training_step\W{1,2} is nan"
        r"|\bnorm\b.* is non-?finite|returned nan values|loss became (infinite or )?nan",
        "Megatron-LM, DeepSpeed, training scripts",
        "AssertionError: Rank 12: found NaN in local grad norm in backward pass before data-parallel communication",
    ),
    _rule(
        "nan-loss",
        ROOT,
        "nan",
        r"number of nan iterations:\s*[1-9]|(lm )?loss: *-?nan\b",
        "Megatron-LM",
        " iteration     7012/  100000 | learning rate: 6.0E-05 | lm loss: NAN | number of nan iterations:   1 |",
    ),
    # ---- network and collectives
    _rule(
        "link-flap",
        ROOT,
        "link|port|carrier",
        r"mlx5_\w+ .*(link down|port error)|\bib\d+: link down|\beth\d+\S*: .*(link is down|link down)"
        r"|Got async event ?: ?port error|local port state.*down|carrier lost|\blink inactive|NIC Link is Down"
        r"|link status definitely down",
        "kernel, NCCL",
        "mlx5_core 0000:c1:00.0 ens9np0: Link down",
    ),
    _rule(
        "link-flap",
        ROOT,
        "net/ib|retry",
        r"NET/IB ?: ?Got completion .*status=(12|5)\b|IBV_WC_RETRY_EXC_ERR|transport retry counter exceeded",
        "NCCL",
        "transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.3.4 with status=12 opcode=0 len=0"
        " vendor err 129",
    ),
    _rule(
        "nccl-timeout",
        FAILURE,
        "collective|nccl|milliseconds",
        r"Watchdog caught collective operation timeout|collective operation timeout: WorkNCCL"
        r"|NCCL operations have failed or timed out|ran for \d+ milliseconds before timing out",
        "PyTorch",
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8172, OpType=ALLREDUCE,"
        " NumelIn=1048576, Timeout(ms)=1800000) ran for 1800432 milliseconds before timing out.",
    ),
    _rule(
        "nccl-timeout",
        FAILURE,
        "timeout|timed|watchdog|monitoredbarrier",
        r"Timeout waiting for key.*nccl|watchdog (hang|got stuck)|failed to pass monitoredBarrier"
        r"|monitoredBarrier.{0,40}tim(ed |e)out|store->get\(.*wait timeout|wait timeout after \d+ ?ms, keys"
        r"|Timed out waiting \d+ms for (send|recv) operation",
        "PyTorch, Gloo",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms"
        " for recv operation to complete",
    ),
    _rule(
        "gpu-fault",
        FAILURE,
        "cuda|cudnn|cublas",
        r"CUDA error: (unknown error|unspecified launch failure|an illegal memory access|an illegal instruction"
        r"|misaligned address|the launch timed out|device-side assert|hardware stack error|system not yet initialized)"
        r"|CUDNN_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR)|CUBLAS_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR)",
        "CUDA",
        "RuntimeError: CUDA error: unknown error",
    ),
    _rule(
        "rendezvous",
        FAILURE,
        "rendezvous|client|dist",
        r"Rendezvous(Timeout|Closed|Connection)Error|client socket has timed out after|DistStoreError|DistNetworkError",
        "torchrun",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
    ),
    _rule(
        "worker-lost",
        CONSEQUENCE,
        "peer|nccl|pipe|remote",
        r"Connection reset by peer|Connection closed by (remote )?peer|ncclRemoteError|ncclSystemError|Broken pipe"
        r"|NCCL communicator was aborted|NCCL error in|remote process exit",
        "NCCL, Gloo, sockets",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there"
        " was a network error, NCCL version 2.20.5",
    ),
    _rule(
        "native-crash",
        FAILURE,
        "exitcode|received by pid",
        r"exitcode\s*: -(4|7|8|11)\b|Signal \d+ \(SIG(ILL|BUS|FPE|SEGV)\) received by PID",
        "torchrun",
        "E0911 api.py:869] failed (exitcode: -11) local_rank: 0 (pid: 3023) of binary: /opt/venv/bin/python",
    ),
    _rule(
        "worker-lost",
        CONSEQUENCE,
        "step",
        r"\bSTEP .*CANCELLED AT (?!.*DUE TO)",
        "Slurm",  # srun ends the other tasks so after one of them has failed
        "slurmstepd: error: *** STEP 1530.0 ON n1 CANCELLED AT 2022-01-04T11:02:44 ***",
    ),
    _rule(
        "worker-lost",
        CONSEQUENCE,
        "srun",
        r"srun: error: \S+: tasks? [\d,-]+: (Exited with exit code [1-9]|Killed|Terminated|Aborted)",
        "Slurm",
        "srun: error: g1: task 5: Exited with exit code 1",
    ),
    _rule(
        "worker-lost",
        CONSEQUENCE,
        "child|signal|exitcode|group",
        r"ChildFailedError|Sending process \d+ closing signal|failed \(exitcode: -?[1-9]\d*\)|SignalException"
        r"|Signal \d+ \(SIG\w+\) received by PID|WorkerGroup .*(unhealthy|FAILED)|process group has .*failed",
        "torchrun",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    ),
    _rule(
        "worker-lost",
        CONSEQUENCE,
        "terminate|aborted",
        r"terminate called (after throwing|without an active)|Fatal Python error: Aborted|Aborted \(core dumped\)",
        "C++ runtime",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
    ),
    # ---- the program
    _rule(
        "native-crash",
        FAILURE,
        "segmentation|fatal|bus|illegal|double|stack|sigsegv",
        r"Segmentation fault|Fatal Python error: (Segmentation|Bus|Illegal)|Bus error \(core|Illegal instruction"
        r"|double free or corruption|stack smashing detected|\bSIGSEGV\b",
        "C runtime",
        "Fatal Python error: Segmentation fault",
    ),
    _rule(
        "python-exception",
        FAILURE,
        "error|exception|exit|failure",
        BEGIN + RAISED,
        "Python",
        "KeyError: 'optimizer_state'",
    ),
    _rule(
        "python-exception",
        FAILURE,
        "stopiteration",
        BEGIN + r"StopIteration(:|\s*$)",
        "Python",
        "StopIteration",
    ),
)
