"""The loop around Python code."""

from __future__ import annotations

import asyncio
import time

import pytest
from builders import an_envelope

from kos_retry import Policy, attempts, evaluate
from kos_retry.engine.backoff import Schedule

AT_ONCE = Schedule(0.0, 1.0, 0.0, "none", 0)


def _made(attempt, work):
    with attempt:
        work()


def _raise(error):
    raise error


def _tried(failures, **policy):
    """Return the numbers of the attempts that were made until one passed or none followed, and what was raised."""
    left, made = list(failures), []

    def work():
        if left:
            _raise(left.pop(0))

    def all_of_them():
        for attempt in attempts(Policy(**policy), schedule=AT_ONCE):
            made.append(attempt.number)
            _made(attempt, work)

    if len(failures) < 2:
        all_of_them()
        return made, None
    with pytest.raises(Exception) as raised:  # noqa: PT011 - which one it was is what is asked
        all_of_them()
    return made, raised.value


def test_block_that_passes_is_made_once():
    assert ([1], None) == _tried([])


def test_exception_is_swallowed_where_another_attempt_follows():
    assert ([1, 2], None) == _tried([ConnectionResetError("connection reset by peer")])


@pytest.mark.parametrize(
    ("failures", "policy", "count"),
    [
        ([ValueError("a"), KeyError("b"), TypeError("c")], {"max_attempts": 2}, 2),
        ([ValueError("total is odd") for _ in range(9)], {}, 3),
        ([PermissionError(13, "Permission denied"), ValueError("a")], {"stop_on": ("exit:1",)}, 1),
    ],
    ids=["budget", "stagnation", "condition"],
)
def test_last_exception_is_raised_where_none_follows(failures, policy, count):
    made, raised = _tried(failures, **policy)
    assert (list(range(1, count + 1)), failures[count - 1]) == (made, raised)


@pytest.mark.parametrize("stopping", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_is_no_failure_passes_through(stopping):
    made = []

    def all_of_them():
        for attempt in attempts(schedule=AT_ONCE):
            made.append(attempt.number)
            _made(attempt, lambda: _raise(stopping()))

    with pytest.raises(stopping):
        all_of_them()
    assert [1] == made


def _chained():
    try:
        _raise(KeyError("queue"))
    except KeyError as error:
        raise RuntimeError("no queue of that name") from error


def test_chain_of_exceptions_is_told_by_its_words():
    told = []

    def all_of_them():
        for attempt in attempts(Policy(max_attempts=2), schedule=AT_ONCE):
            told.append(attempt.guidance)
            _made(attempt, _chained)

    with pytest.raises(RuntimeError):
        all_of_them()
    assert ("", True) == (told[0], "RuntimeError: no queue of that name" in told[1])


def test_leaving_the_loop_ends_it():
    for attempt in attempts():
        with attempt:
            break
    assert 1 == attempt.number


def test_attempt_that_is_not_made_is_a_mistake():
    with pytest.raises(RuntimeError, match="with attempt"):
        list(attempts())


def test_waits_of_async_blocks_are_awaited():
    waiting = Schedule(0.2, 1.0, 0.2, "none", 0)
    order = []

    async def work():
        left = [TimeoutError("timed out waiting for the queue")]
        for attempt in attempts(Policy(max_attempts=3), schedule=waiting):
            async with attempt:
                order.append(f"attempt {attempt.number}")
                if left:
                    raise left.pop()

    async def beside():
        await asyncio.sleep(0.05)
        order.append("beside")

    async def both():
        await asyncio.gather(work(), beside())

    asyncio.run(both())
    assert ["attempt 1", "beside", "attempt 2"] == order


def test_wait_of_a_block_is_the_schedules():
    began = time.monotonic()
    for attempt in attempts(schedule=Schedule(0.1, 1.0, 0.1, "none", 0)):
        with attempt:
            if attempt.number == 1:
                raise ConnectionResetError("connection reset by peer")
    assert time.monotonic() - began >= 0.1


def test_history_may_be_as_small_as_a_code_and_a_message():
    small = [{"exit_code": 1, "error_message": "error: cart is empty"}] * 2
    assert ("pivot_strategy", "zero_delta") == (evaluate(small).recommendation, evaluate(small).stop_reason)


def test_history_may_be_of_envelopes():
    assert "continue" == evaluate([an_envelope("A")]).recommendation


def test_of_no_history_one_goes_on():
    assert "continue" == evaluate([]).recommendation
