"""A forked child neither sends nor writes for its parent, and may record runs of its own."""

from pathlib import Path

from cairn import Client

from tests.client.recorder.jobs import environment, run_job

CODE = """
import threading
run = cairn.start({project!r}, 'r', capture=OFF)
run.saved(step=1)
answers = []
for number in range(5):
    child = os.fork()
    if child == 0:
        said = run.saved(step=100 + number)
        run.log(100, loss=1.0)
        run.finish()
        own = cairn.start({project!r}, f'child-{{number}}', capture=OFF)
        own.saved(step=number)
        threads = sorted(each.name for each in threading.enumerate() if each.name.startswith('cairn'))
        done = own.flush(60)
        os._exit(0 if (said, done) == (False, True) and threads else 7)
    answers.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in answers]
print(codes, run.saved(step=2), run.flush(60))
run.finish()
"""

WORKERS = """
import multiprocessing
def work(number):
    return number
if __name__ == '__main__':
    run = cairn.start({project!r}, 'r', capture=OFF)
    for epoch in range(3):
        with multiprocessing.get_context('fork').Pool(4) as pool:
            assert pool.map(work, range(20)) == list(range(20))
        run.saved(step=epoch + 1)
    run.finish()
"""


def test_a_forked_child_leaves_the_parents_spool_alone(
    live: Client, project: str, service: tuple[str, Path], spool: Path
) -> None:
    done = run_job(CODE.format(project=project), environment(*service, spool), seconds=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0, 0, 0, 0, 0] True True\n", done.stderr
    assert not list(spool.glob("refused/*")), done.stderr
    found = sorted(
        (str(each.run and each.run.name), each.step) for each in live.iter_checkpoints(filter=f"project = '{project}'")
    )
    assert found == [*((f"child-{number}", number) for number in range(5)), ("r", 1), ("r", 2)]
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert attempt.state == "finished"


def test_workers_of_a_data_loader_change_nothing(
    live: Client, project: str, service: tuple[str, Path], spool: Path
) -> None:
    done = run_job(WORKERS.format(project=project), environment(*service, spool), seconds=240)
    assert done.returncode == 0, done.stderr
    found = sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'"))
    assert found == [1, 2, 3]
    assert not list(spool.glob("*/records-*.log"))
