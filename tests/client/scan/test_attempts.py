"""Which attempt a checkpoint found on disk belongs to."""

from cairn.scan.attempts import Saved, Split, split_attempts

HOUR = 3600.0


def by_time(*steps: int, names: str = "checkpoint-{}") -> list[Saved]:
    """Saved one hour apart, in this order."""
    return [Saved(step, names.format(step), place * HOUR) for place, step in enumerate(steps)]


def numbers(saved: list[Saved], **options: bool) -> dict[tuple[int, int], int]:
    """(step, version) -> attempt."""
    split = split_attempts(saved, **options)
    return {(each.step, each.version): number for each, number in zip(saved, split.numbers, strict=True)}


def test_steps_in_the_order_of_their_times_are_one_attempt() -> None:
    assert split_attempts(by_time(100, 200, 300)) == Split((1, 1, 1))


def test_a_reused_folder_holds_the_rest_of_the_attempt_before() -> None:
    saved = by_time(300, 400, 500, 100, 200)
    split = split_attempts(saved)
    assert split.numbers == (1, 1, 1, 2, 2)
    assert "step 100 was written after step 500" in split.reason


def test_times_can_be_left_aside() -> None:
    assert split_attempts(by_time(300, 400, 500, 100, 200), by_time=False).numbers == (1,) * 5


def test_a_copied_tree_is_not_taken_for_attempts() -> None:
    """`cp -r` in the order of the names' text writes checkpoint-1000 before checkpoint-200."""
    assert split_attempts(by_time(1000, 1100, 200, 300)).numbers == (1, 1, 1, 1)


def test_times_within_an_instant_tell_nothing() -> None:
    saved = [Saved(step, f"checkpoint-{step}", place * 0.01) for place, step in enumerate((300, 100, 200))]
    assert split_attempts(saved).numbers == (1, 1, 1)


def test_times_in_no_order_at_all_tell_nothing() -> None:
    assert set(split_attempts(by_time(5, 3, 9, 1, 8, 2, 7, 4, 6)).numbers) == {1}


def test_steps_that_repeat_are_attempts_by_the_version_in_their_names() -> None:
    saved = [
        Saved(100, "epoch=0-step=100.ckpt"),
        Saved(100, "epoch=0-step=100-v1.ckpt", version=1),
        Saved(200, "epoch=0-step=200.ckpt"),
    ]
    split = split_attempts(saved)
    assert split.numbers == (1, 2, 1)
    assert split.reason == "1 step repeats"


def test_repeats_and_times_together_tell_the_whole_second_attempt() -> None:
    saved = [
        Saved(100, "step=100.ckpt", 0 * HOUR),
        Saved(200, "step=200.ckpt", 1 * HOUR),
        Saved(100, "step=100-v1.ckpt", 2 * HOUR, version=1),
        Saved(300, "step=300.ckpt", 3 * HOUR),
    ]
    assert numbers(saved) == {(100, 0): 1, (200, 0): 1, (100, 1): 2, (300, 0): 2}


def test_folders_named_after_attempts_number_them() -> None:
    saved = [Saved(step, "x", hint=hint) for hint in (1, 2) for step in (10, 20)]
    assert split_attempts(saved).numbers == (1, 1, 2, 2)


def test_a_number_whose_neighbours_are_gone_stays() -> None:
    assert split_attempts([Saved(10, "x", hint=3), Saved(10, "x", hint=5)]).numbers == (3, 5)


def test_attempts_counted_from_zero_begin_at_one() -> None:
    assert split_attempts([Saved(10, "x", hint=0), Saved(10, "x", hint=1)]).numbers == (1, 2)


def test_a_reused_folder_within_an_attempts_folder_shifts_those_after_it() -> None:
    first = [Saved(step, f"s{step}", place * HOUR, hint=1) for place, step in enumerate((300, 100, 200))]
    later = [Saved(300, "s300", 9 * HOUR, hint=2)]
    assert split_attempts([*first, *later]).numbers == (1, 2, 2, 3)
