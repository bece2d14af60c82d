"""What a log says of its end, in the words that programs, drivers and schedulers use, and what only sounds like it."""

import pytest
from cairn.causes import guess, match_of

# The cause, and lines as they stand in a log; several lines are one log.
SAID: tuple[tuple[str, str], ...] = (
    # ---- collectives
    (
        "nccl-timeout",
        "[rank7]:[E0214 03:02:41 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=90210, OpType=_ALLGATHER_BASE, Timeout(ms)=600000) ran for 600087 milliseconds\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'",
    ),
    (
        "nccl-timeout",
        "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.",
    ),
    (
        "nccl-timeout",
        "[rank4]:[F ProcessGroupNCCL.cpp:1169] [PG 5 Rank 0] ProcessGroupNCCL's watchdog got stuck for 600 seconds "
        "without making progress in monitoring enqueued collectives.",
    ),
    (
        "nccl-timeout",
        "[E ProcessGroupNCCL.cpp:455] Some NCCL operations have failed or timed out. To avoid data inconsistency,",
    ),
    ("nccl-timeout", "RuntimeError: Rank 5 failed to pass monitoredBarrier in 600000 ms"),
    (
        "nccl-timeout",
        "RuntimeError: [3] is setting up NCCL communicator via c10d key-value store by store->get('0'), but "
        "store->get('0') got error: wait timeout after 300000ms, keys: /default_pg/0//cuda//0",
    ),
    (
        "rendezvous",
        "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.",
    ),
    (
        "worker-lost",
        "[rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.0.9]:4711",
    ),
    ("worker-lost", "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, unhandled cuda error"),
    # ---- GPU
    (
        "gpu-off-bus",
        "[88120.4] NVRM: Xid (PCI:0000:c1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    ),
    ("gpu-off-bus", "Unable to determine the device handle for GPU2: 0000:81:00.0: GPU is lost. Reboot the system"),
    ("gpu-off-bus", "pynvml.NVMLError_GpuIsLost: GPU is lost"),
    ("gpu-ecc", "NVRM: Xid (PCI:0000:3d:00): 48, pid=77, DBE (double bit error) ECC Error at 0x1c"),
    ("gpu-ecc", "NVRM: Xid (PCI:0000:3d:00): 63, name=<unknown>, Row Remapper: New row (0x0000) marked for remapping"),
    ("gpu-ecc", "n4:99:120 [2] misc/strongstream.cc:53 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'"),
    ("gpu-xid", "NVRM: Xid (PCI:0000:07:00): 74, name=<unknown>, NVLink: fatal error detected on link 6(0x10000, 0x0)"),
    ("gpu-xid", "NVRM: Xid (PCI:0000:84:00): 43, pid=1520, name=python, Ch 00000008"),
    ("gpu-xid", "nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 33 LTSSM Fault Up"),
    ("gpu-xid", "nv-fabricmanager: detected NVSwitch fatal error 20034 on fid 0 port 33"),
    ("unknown", "nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 30 egress non-posted PRIV error"),
    ("gpu-fault", "RuntimeError: CUDA error: device-side assert triggered"),
    ("gpu-fault", "RuntimeError: CUDA error: system not yet initialized"),
    # ---- memory
    (
        "gpu-memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.5 GiB. If reserved but unallocated memory "
        "is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    ),
    ("gpu-memory", "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    ("gpu-memory", "RuntimeError: CUDA driver error: out of memory"),
    ("gpu-memory", "n0:77:91 [4] include/alloc.h:205 NCCL WARN Cuda failure 2 'out of memory'"),
    (
        "gpu-memory",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.",
    ),
    (
        "host-memory",
        "[99.1] python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
    ),
    (
        "host-memory",
        "Memory cgroup out of memory: Killed process 812 (python) total-vm:9kB, shmem-rss:0kB, UID:0 "
        "pgtables:12kB oom_score_adj:0",
    ),
    ("host-memory", "Out of memory: Kill process 8120 (python) score 911 or sacrifice child"),
    ("host-memory", "srun: error: g0412: tasks 0-3,7: Out Of Memory"),
    ("host-memory", "slurmstepd: error: Exceeded job memory limit"),
    ("host-memory", "slurmstepd: error: Job 77 exceeded memory limit (33554432 > 16777216), being killed"),
    ("host-memory", "  Last State: Terminated\n    Reason: OOMKilled\n    Exit Code: 137"),
    ("host-memory", "RuntimeError: DataLoader worker (pid(s) 612) exited unexpectedly"),
    # ---- storage
    (
        "disk-full",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 4608 vs 4502\n"
        "OSError: [Errno 28] No space left on device",
    ),
    (
        "disk-full",
        'safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, message: "No space left on '
        'device" })',
    ),
    (
        "storage-io",
        "RuntimeError: [enforce fail at inline_container.cc:778] . PytorchStreamWriter failed writing file data/9: "
        "file write failed",
    ),
    ("storage-io", "OSError: [Errno 30] Read-only file system: '/mnt/ckpt/step_900'"),
    ("storage-io", "kernel: nfs: server nas3 not responding, timed out"),
    ("corrupt-checkpoint", "EOFError: Ran out of input"),
    # ---- network
    ("link-flap", "kernel: i40e 0000:3d:00.0 ens785f0: NIC Link is Down"),
    ("link-flap", "kernel: bond0: (slave ens1f0): link status definitely down, disabling slave"),
    (
        "link-flap",
        "n1:8:9 [0] transport/net_ib/p2p.cc:100 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<5000> with "
        "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)",
    ),
    # ---- host and power
    ("host-fault", "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000000800400"),
    ("host-fault", "srun: error: Node failure on gpu-03"),
    ("host-fault", "EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#1"),
    ("unknown", "mce: [Hardware Error]: Machine check events logged\nEDAC MC0: 1 CE memory read error on CPU_SrcID#0"),
    ("unknown", "[Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00004000010091"),  # by its status: corrected
    ("power", "PSU0003: The power input for power supply 2 is lost."),
    ("power", "node r3i1n2 lost power during breaker trip in row C"),
    # ---- scheduler and people
    (
        "scheduler-limit",
        "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-02T03:04:05 DUE TO TIME LIMIT ***",
    ),
    ("scheduler-limit", "  Reason:   DeadlineExceeded\n  Message: Job was active longer than specified deadline"),
    (
        "preemption",
        '{"action": "terminate", "time": "2024-05-04T17:11:44Z"} from http://meta/latest/spot/instance-action',
    ),
    ("preemption", "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-02T03:04:05 DUE TO PREEMPTION ***"),
    (
        "user-interrupt",
        "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-02T03:04:05 ***\n"
        "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-02T03:04:05 ***",
    ),
    ("worker-lost", "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-02T03:04:05 ***"),
    (
        "worker-lost",
        "srun: error: g1: task 5: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 1.0 ON g0 CANCELLED AT 2024-01-02T03:04:05 ***",
    ),
    (
        "native-crash",
        "slurmstepd: error: *** STEP 1.0 ON g0 CANCELLED AT 2024-01-02T03:04:05 ***\n"
        "srun: error: g1: task 5: Segmentation fault (core dumped)",
    ),
    # ---- NaN
    ("nan-loss", "ValueError: The loss returned in `training_step` is nan."),
    (
        "nan-loss",
        "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be "
        "clipped.",
    ),
    ("nan-loss", "RuntimeError: Function 'LogSoftmaxBackward0' returned nan values in its 0th output."),
    ("nan-loss", "FloatingPointError: Loss became infinite or NaN at iteration=1200!"),
    ("nan-loss", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."),
    # ---- the program
    ("python-exception", "3: Traceback (most recent call last):\n3: ZeroDivisionError: division by zero"),
    ("python-exception", "2024-05-01 10:00:00 ERROR train.py:12 | ZeroDivisionError: division by zero"),
    (
        "python-exception",
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "a.py", line 1, in <module>\n'
        "[rank0]:     run()\n[rank0]: mypkg.BadBatch: batch 12 is corrupt",
    ),
    ("python-exception", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456"),
    ("python-exception", "Exception: the data is of another length"),
    ("python-exception", "KeyError: 0"),
    (
        "native-crash",
        "E1123 api.py:869] failed (exitcode: -11) local_rank: 0 (pid: 123)\nChildFailedError:\n"
        "  traceback : Signal 11 (SIGSEGV) received by PID 123",
    ),
    ("worker-lost", "E1123 api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 123) of binary: /usr/bin/python"),
    ("native-crash", "[n1:12345] *** Process received signal ***\n[n1:12345] Signal: Segmentation fault (11)"),
    # ---- given up after retries, which is no mention
    ("storage-io", "OSError: [Errno 5] Input/output error, giving up after 5 retries, not retrying"),
)


@pytest.mark.parametrize(("cause", "log"), SAID, ids=[f"{cause}: {log[:50]}" for cause, log in SAID])
def test_a_log_says_its_cause(cause: str, log: str) -> None:
    assert guess(log.split("\n")).cause == cause


MENTIONED = (
    # counts of nothing
    *("    DRAM Uncorrectable ECC             : 0", "dcgm: 0 uncorrectable ECC errors", "Double Bit ECC Errors : 0"),
    *("nonfinite grads skipped: 0", "non-finite grad count: 0", "found NaN in 0 of 812 parameters", "carrier lost: 0"),
    *("eth2: link is up; carrier lost count 0", "mlx5_1 link down count: 0", "mlx5_1 port error counters: 0"),
    *("NODE_FAIL=0 requeue enabled", "was preempted: False", "Skipping batch: loss is nan=False", "Exception: none"),
    *("Aborted (core dumped) count 0", "gpu power cap voltage faults: 0", "Input/output error budget: 0"),
    *("Row remapping failure: No", "no GPU has fallen off the bus in the last day", "failed (exitcode: 0)"),
    # metrics that are called like exceptions
    *("MeanSquaredError: 0.021", "test_error: 0.3", "ValError: 0.31", "RelativeError: 1e-3", "L2Error: 0.4"),
    *("  MeanAbsoluteError:  12.3", "MeanSquaredError: 0.021 | MeanAbsoluteError: 0.1", "error_rate: 0.0"),
    # handlers, advice, names of options
    *("Registered SIGSEGV handler", "SIGSEGV handler installed at 0x7f", "signal handler for SIGSEGV registered"),
    *("[rank0] KeyboardInterrupt handler set", "Preemptible: true; spot termination handler started"),
    *("INFO: if you see 'CUDA out of memory', lower --micro-batch-size", "spot interruption rate: 2%"),
    "Tip: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid CUDA out of memory errors",
    "# CUDA_LAUNCH_BLOCKING=1 helps with CUDA error: device-side assert triggered",
    *("kubernetes taint: TaintManagerEviction disabled", "scheduled: node 12 JobTimeLimit=2-00:00:00"),
    *("DUE TO TIME LIMIT policy: jobs are requeued", "Cannot allocate memory hints: none"),
    *("Ran out of input prompts; sampling again", "removed; No space left on device would have followed"),
    # survived
    *(
        "google.api_core.exceptions.DeadlineExceeded: 504 Deadline Exceeded, retrying",
        "grpc: DeadlineExceeded, retry 1",
    ),
    *("WARNING: CUDA out of memory caught, retrying with batch size 4", "CUDA out of memory, reducing batch size to 4"),
    *("ConnectionResetError: [Errno 104] Connection reset by peer (retry 1)", "Broken pipe recovered"),
    *(
        "wandb: ERROR Error while calling W&B API: Timeout (<Response [504]>)",
        "Ignoring exception: ValueError: too long",
    ),
)


@pytest.mark.parametrize("line", MENTIONED)
def test_what_is_only_mentioned_says_nothing(line: str) -> None:
    assert match_of(line) is None


OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
TIMEOUT = "[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8"
STEP = "[rank{}]: step {} | loss 2.1 | lr 1e-4"
TRAINER = "{{'loss': 2.3, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': {:.2f}}}"


def test_other_ranks_that_end_the_same_step_have_not_survived() -> None:
    assert guess([OOM, *(STEP.format(rank, 100) for rank in (0, 1, 2)), TIMEOUT]).cause == "gpu-memory"
    assert guess([OOM, STEP.format(0, 100), STEP.format(1, 101), STEP.format(0, 102), TIMEOUT]).cause == "nccl-timeout"


def test_a_trainer_without_a_bar_survives_by_its_epochs() -> None:
    assert (
        guess([OOM, *(TRAINER.format(each / 100) for each in range(200)), "KeyError: 'x'"]).cause == "python-exception"
    )


def test_the_program_s_own_text_within_a_traceback_says_nothing() -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        '    raise SkipBatch("CUDA out of memory") if oom else ValueError("bad")',
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "ValueError: bad",
    ]
    assert guess(traceback).cause == "python-exception"
    assert guess([f"[rank3]: {line}" for line in traceback]).cause == "python-exception"
    assert guess([*traceback[:-1], OOM]).cause == "gpu-memory"
