"""`kos-retry extractors check`: what it exits with, and what it prints."""

from __future__ import annotations

import json

import pytest

_MANIFEST = 'id = "{name}"\nprotocol = 1\nversion = "1"\npriority = 300\ncommand = ["sh", "{{dir}}/extract.sh"]\n'


@pytest.fixture
def extractor(tmp_path):
    def make(name: str, answer: str = '{"protocol": 1, "findings": []}', before: str = "cat >/dev/null"):
        directory = tmp_path / name
        case = directory / "fixtures" / "quiet"
        case.mkdir(parents=True)
        (directory / "extractor.toml").write_text(_MANIFEST.format(name=name))
        (directory / "extract.sh").write_text(f"{before}\nprintf '%s' '{answer}'\n")
        (case / "output.log").write_text("nothing of note\n")
        (case / "expected.json").write_text('{"protocol": 1, "findings": []}')
        return str(directory)

    return make


def test_result_is_shown_for_each_and_problems_below(kos_retry, extractor):
    done = kos_retry("extractors", "check", extractor("quiet"), extractor("broken", "sorry"))
    lines = done.stdout.decode().splitlines()
    assert (1, ["ok     quiet              1 case", "failed broken             1 case"]) == (done.code, lines[:2])
    assert lines[2].startswith("  quiet: the answer is not JSON: ")


# Fails on whatever is shorter than the output was.
_PICKY = 'path=$(sed \'s/.*"path": "//; s/".*//\'); [ $(wc -c <"$path") -ge 16 ] || exit 9'


def test_json_has_every_problem(kos_retry, extractor):
    done = kos_retry("extractors", "check", "--format", "json", extractor("picky", before=_PICKY))
    (row,) = done.json["extractors"]
    assert (1, "picky", False, 1) == (done.code, row["id"], row["ok"], row["cases"])
    problems = [(problem["case"], problem["what"]) for problem in row["problems"]]
    assert [("quiet", f"cut off at {n} %: exit code 9") for n in range(100)] == problems


def test_text_has_the_first_problems(kos_retry, extractor):
    done = kos_retry("extractors", "check", extractor("picky", before=_PICKY))
    assert b"  and 90 more; --format json has them all\n" == done.stdout.splitlines(keepends=True)[-1]


def test_extractors_that_hold_exit_with_0(kos_retry, extractor):
    assert 0 == kos_retry("extractors", "check", extractor("quiet")).code


@pytest.mark.parametrize(
    "command",
    [["extractors", "check"], ["extractors", "run"], ["observe", "--exit-code", "1", "--extractor"]],
    ids=" ".join,
)
def test_manifest_that_is_not_valid_is_bad_input(kos_retry, extractor, command, tmp_path):
    directory = extractor("odd")
    (tmp_path / "odd" / "extractor.toml").write_text('id = "Odd"\n')
    done = kos_retry(*command, directory)
    assert (2, b"") == (done.code, done.stdout)
    assert [f"{directory}/extractor.toml: protocol: the key is missing"] == done.said


def test_own_extractor_is_run_on_a_log(kos_retry, extractor):
    answer = json.dumps({"protocol": 1, "findings": [{"kind": "policy", "code": "R1", "message": "m"}]})
    done = kos_retry("extractors", "run", extractor("mine", answer), "--log", "-", stdin=b"anything\n")
    assert (0, ["R1"]) == (done.code, [finding["code"] for finding in done.json["findings"]])


@pytest.mark.parametrize("given", ["option", "file", "variable"])
def test_own_extractor_is_asked_where_the_user_names_it(kos_retry, extractor, given):
    answer = json.dumps(
        {"protocol": 1, "findings": [{"kind": "policy", "code": "R1", "message": "m", "confidence": "exact"}]}
    )
    directory = extractor("mine", answer)
    (kos_retry.home / "kos-retry.toml").write_text(f'extractor = ["{directory}"]\n' * (given == "file"))
    done = kos_retry(
        "run", "--max-attempts", "1", *["--extractor", directory] * (given == "option"), "--", "false",
        environment={"KOS_RETRY_OPT_EXTRACTOR": directory} if given == "variable" else {},
    )  # fmt: skip
    assert 1 == done.code
    assert ["R1"] == kos_retry.attempts()[0]["envelope"]["failing_constraints"]


def test_extractor_beside_the_command_is_not_asked_by_itself(kos_retry, extractor, tmp_path):
    extractor("mine")
    (tmp_path / "mine" / "extract.sh").write_text(": > asked\n")
    assert 1 == kos_retry("run", "--max-attempts", "1", "--", "false", cwd=tmp_path).code
    assert not (tmp_path / "mine" / "asked").exists()


def test_named_one_is_asked_in_a_batch(kos_retry, extractor):
    answer = json.dumps(
        {"protocol": 1, "findings": [{"kind": "policy", "code": "R1", "message": "m", "confidence": "exact"}]}
    )
    rows = b'{"id": 1, "exit_code": 1}\n{"id": 2, "exit_code": 2}\n'
    done = kos_retry("observe", "--jsonl", "--extractor", extractor("mine", answer), stdin=rows)
    assert [["R1"], ["R1"]] == [row["envelope"]["failing_constraints"] for row in done.rows]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("sadness", "extractor 'sadness': there is none, see kos-retry extractors list"),
        ("./gone", "gone/extractor.toml: No such file or directory"),
    ],
)
@pytest.mark.parametrize("also", [[], ["--dry-run"]], ids=["run", "dry-run"])
def test_wrong_extractor_is_told_before_the_command_starts(kos_retry, word, said, also):
    done = kos_retry("run", *also, "--extractor", word, "--", "touch", "started")
    assert (125, 1) == (done.code, len(done.said))
    assert done.said[0].startswith(said)
    assert not (kos_retry.home / "started").exists()


def test_extractor_that_the_command_removes_is_read_before(kos_retry, extractor, tmp_path):
    done = kos_retry(
        "run",
        "--max-attempts",
        "1",
        "--extractor",
        extractor("mine"),
        "--",
        "sh",
        "-c",
        f"rm -r {tmp_path}/mine; exit 3",
    )
    assert 3 == done.code
    assert "mine" in kos_retry.attempts()[0]["envelope"]["extractors"]
