"""The command as a whole: help, version, exit codes, progress, flags."""

import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

import clew as package
from clew.cli import _exits, _progress
from clew.cli._parameters import parse_value, split_arguments
from clew.exceptions import ParameterError, WorkLimitError

COMMANDS = ["cluster", "check", "methods", "demo", "ask", "export", "import", "status", "correct", "add", "review"]


def python(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_version(clew):
    result = clew("--version")
    assert result.exit_code == 0
    assert result.stdout == f"clew {package.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_by_example(clew, name):
    result = clew(name, "--help")
    assert result.exit_code == 0
    assert f"clew {name}" in result.stdout.split("Examples")[1]
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_lists_commands_and_exit_codes(clew):
    result = clew("--help")
    for words in (*COMMANDS, "Exit codes", "130"):
        assert words in result.stdout


def test_help_says_that_the_seed_is_fixed(clew):
    text = " ".join(clew("cluster", "--help").stdout.split())
    assert "--random-state" in text
    assert "[default: 0]" in text


@pytest.mark.parametrize("words", [["check", "a.csv"], ["check", "a.csv", "-k", "three"], ["wibble"]])
def test_wrong_usage_is_exit_2(clew, words):
    assert clew(*words).exit_code == 2


def test_without_typer_it_names_the_extra():
    result = python("import sys; sys.modules['typer'] = None; from clew.cli import main; main()")
    assert result.returncode == 2
    assert result.stderr == "error: The clew command needs typer and rich: pip install 'clew[cli]'.\n"


def test_interrupted_while_loading_is_one_line():
    code = "import clew.cli as c\ndef stop():\n    raise KeyboardInterrupt\nc._load = lambda: stop\nc.main()"
    result = python(code)
    assert result.returncode == 130
    assert result.stderr == "stopped; nothing was written\n"


def test_main_runs_the_arguments_of_the_process():
    result = python("from clew.cli import main; main()", "--version")
    assert result.returncode == 0
    assert result.stdout == f"clew {package.__version__}\n"


def test_help_does_not_load_the_library():
    code = "import sys, atexit; from clew.cli import main; atexit.register(lambda: print('sklearn' in sys.modules))"
    assert python(f"{code}; main()", "--help").stdout.endswith("False\n")


def run_guarded(function):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(_exits.command(function))
    return CliRunner().invoke(app, [])


def fails_with(error):
    def function() -> None:
        raise error

    return run_guarded(function)


@pytest.mark.parametrize(
    "error, code, sentence",
    [
        (WorkLimitError("Neither was found."), 3, "error: Neither was found.\n"),
        (OSError(28, "No space left on device", "out.csv"), 2, "error: out.csv: No space left on device.\n"),
        (OSError("Something else."), 2, "error: Something else.\n"),
        (MemoryError(), 2, "error: Not enough memory.\n"),
        (KeyboardInterrupt(), 130, "stopped; nothing was written\n"),
        (
            TypeError("a\nb"),
            70,
            "error: This is a bug in clew (TypeError: a b). Please report the command; CLEW_DEBUG=1 shows more.\n",
        ),
    ],
)
def test_exit_codes(monkeypatch, error, code, sentence):
    monkeypatch.delenv("CLEW_DEBUG", raising=False)
    result = fails_with(error)
    assert result.exit_code == code
    assert result.stderr == sentence


def test_debugging_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("CLEW_DEBUG", "1")
    assert isinstance(fails_with(TypeError("a")).exception, TypeError)


def test_warnings_become_one_line():
    import warnings

    def function() -> None:
        warnings.warn("It stopped early.", UserWarning, stacklevel=1)

    result = run_guarded(function)
    assert result.exit_code == 0
    assert result.stderr == "warning: It stopped early.\n"


def test_markup_in_a_message_is_text():
    result = fails_with(ParameterError("pip install 'clew[io]' [bold]"))
    assert result.stderr == "error: pip install 'clew[io]' [bold]\n"


class Terminal:
    """Stands for stderr on a terminal."""

    def __init__(self):
        self.written = []

    def isatty(self):
        return True

    def write(self, text):
        self.written.append(text)
        return len(text)

    def flush(self):
        pass

    def fileno(self):
        raise OSError


def test_progress_shows_the_round_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal has no line to rewrite
    logger = logging.getLogger("clew")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with _progress.progress("PCKMeans"):
        logger.getChild("x").debug("round", extra={"round": 3, "objective": 1234.5678, "max_iter": 300})
        logger.getChild("x").info("no round in this one")
        (handler,) = set(logger.handlers) - set(before[2])
        assert str(handler._status.status) == "PCKMeans: round 3 of at most 300, objective 1234.57"
    assert "PCKMeans" in "".join(terminal.written)
    assert (logger.level, logger.propagate, logger.handlers) == before


def test_progress_of_a_network_has_a_stage_and_the_time_that_is_left():
    shown = []
    handler = _progress._Rounds(SimpleNamespace(update=shown.append), "Deep")
    record = {"stage": "pre-training", "round": 3, "max_iter": 9, "objective": 0.5, "seconds_left": 200.0}
    handler.emit(logging.makeLogRecord(record))
    handler.emit(logging.makeLogRecord({"round": 5, "max_iter": 300}))  # k-means in the embedding
    (line,) = shown
    assert str(line) == "Deep: pre-training, round 3 of 9, up to 3 min left"
    assert [_progress.duration(seconds) for seconds in (4, 80, 600, 9000)] == ["4 s", "80 s", "10 min", "2 h"]


def test_no_progress_when_quiet_or_not_on_a_terminal(monkeypatch, capsys):
    with _progress.progress("PCKMeans"):
        assert not logging.getLogger("clew").isEnabledFor(logging.DEBUG)
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with _progress.progress("PCKMeans", quiet=True):
        assert terminal.written == []


@pytest.mark.parametrize(
    "text, value",
    [
        ("3", 3),
        ("-2", -2),
        ("1e-3", 0.001),
        ("none", None),
        ("True", True),
        ("auto", "auto"),
        ("1,2.5,x", [1, 2.5, "x"]),
        ("k-means++", "k-means++"),
    ],
)
def test_words_become_values(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


DEFAULTS = {"penalty": "auto", "max_iter": 300, "entailed": True}


@pytest.mark.parametrize(
    "words, expected",
    [
        ("a.csv", (["a.csv"], {})),
        ("--penalty 2 a.csv", (["a.csv"], {"penalty": 2})),
        ("a.csv --max-iter=5", (["a.csv"], {"max_iter": 5})),
        ("--no-entailed a.csv", (["a.csv"], {"entailed": False})),
        ("--entailed a.csv", (["a.csv"], {"entailed": True})),
        ("--entailed=false a.csv", (["a.csv"], {"entailed": False})),
        ("- --penalty -1", (["-"], {"penalty": -1})),
    ],
)
def test_arguments_are_split(words, expected):
    assert split_arguments(words.split(), "pck-means", DEFAULTS, ["--scale"]) == expected


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("--max_iter 3", r"--max_iter is neither .* Did you mean --max-iter\?"),
        ("--scal standard", r"Did you mean --scale\?"),
        (
            "--xyzzy",
            r"parameter of pck-means. pck-means takes --penalty, --max-iter, --entailed, --no-entailed",
        ),
        ("--penalty", "--penalty of pck-means needs a value"),
        ("--penalty --max-iter 3", "--penalty of pck-means needs a value"),
        ("--no-entailed=true", "--no-entailed is neither"),
    ],
)
def test_wrong_arguments_say_what_there_is(words, sentence):
    with pytest.raises(ParameterError, match=sentence):
        split_arguments(words.split(), "pck-means", DEFAULTS, ["--scale"])
