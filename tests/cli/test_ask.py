"""`clew ask`: every key, resume, undo, conflicts, and a real terminal."""

import json
import os
import pty
import re
import select
import sys
from dataclasses import replace

import pytest

from clew import Session
from clew._words import without_password
from clew.active import DenseMinMax
from clew.cli import _ask
from clew.cli._project import ProjectRequest, place_of
from clew.exceptions import ParameterError

GROUPS = {name: group for group in ("abcd", "efgh", "ijkl") for name in group}


def same(left, right):
    return GROUPS[left] == GROUPS[right]


@pytest.fixture
def ask(clew, blobs):
    def type_in(keys, *words):
        return clew("ask", "data.csv", "--id", "name", *words, keys=keys)

    return type_in


@pytest.fixture
def project(blobs):
    path = blobs / "data.clew"
    with Session.create(path, blobs / "data.csv", id_column="name", n_clusters=3) as session:
        yield session


class Keys:
    """Keys that are computed when they are pressed."""

    def __init__(self, press, text=None, is_live=True):
        self._press, self._text, self.is_live = press, text, is_live

    def key(self):
        return self._press()

    def line(self):
        return self._text


def sit(session, press, **options):
    _ask.AskingLoop(session, Keys(press, **options), "me", ProjectRequest("data.csv")).run()


def answers(path="data.clew"):
    with Session.open(path) as session:
        return [(record.left, record.right, record.answer) for record in session.answers()]


def test_answers_are_recorded_and_the_project_is_beside_the_data(ask):
    result = ask("s\nd\nu\n", "-k", 3)
    assert result.exit_code == 0, result.output
    assert [answer for _, _, answer in answers()] == ["same", "different", "unsure"]
    assert "3 answers this time, 3 in all. Every answer is saved in data.clew." in result.stdout


@pytest.mark.parametrize(
    "words, wanted",
    [
        ("y\nn\n \n", ["same", "different", "unsure"]),
        ("same\nDifferent\nunsure\n", ["same", "different", "unsure"]),
        ("S\n\n\nyes\nNO\n", ["same", "same", "different"]),
        ("s\nquit\nd\n", ["same"]),
        ("perhaps\nd\n", ["different"]),
    ],
)
def test_words_and_letters(ask, words, wanted):
    result = ask(words)
    assert result.exit_code == 0, result.output
    assert [answer for _, _, answer in answers()] == wanted
    assert ("Press S, D or Space; ? for help." in result.stdout) == ("perhaps" in words)


def test_running_it_again_goes_on_with_the_open_question(ask):
    first = ask("d\n").stdout
    again = ask("d\n").stdout
    shown = first.split("Are these two the same?")
    assert again.split("Are these two the same?")[1].splitlines()[1] == shown[-1].splitlines()[1]
    assert "data.clew: 12 rows, 1 answer so far." in again
    assert len(answers()) == 2


def test_undo_brings_the_question_back_and_goes_further_each_time(ask):
    result = ask("s\nd\nz\nz\nd\ns\nq\n", "-k", 3)
    said = answers()
    assert [answer for _, _, answer in said] == ["different", "same"]
    assert result.stdout.count("Undone: answer") == 2
    asked = [line.split() for line in result.stdout.splitlines() if re.fullmatch(r" +[a-l] +[a-l] *", line)]
    assert asked[3] == asked[1] and asked[4] == asked[0]


def test_undo_with_nothing_said_says_so(ask):
    assert "There is nothing to undo." in ask("z\n").stdout


def test_flag_and_comment_go_with_the_answer(ask):
    result = ask("f\nc odd spelling\ns\nc\nsecond thoughts\nf\nf\nd\n")
    assert result.stdout.count("Flagged for a second look.") == 2
    with Session.open("data.clew") as session:
        first, second = session.answers()
    assert (first.flag, first.comment, first.seconds) == (True, "odd spelling", None)
    assert (second.flag, second.comment) == (False, "second thoughts")


def test_help_lists_the_keys_and_asks_on(ask):
    result = ask("?\ns\n")
    for words in ("Z, Backspace", "unsure: this pair is not asked again", "every answer is saved"):
        assert words in result.stdout
    assert len(answers()) == 1


def test_asks_until_nothing_is_left_and_tells_what_follows(project):
    def press():
        (question,) = project.pending()
        return "s" if same(question.left, question.right) else "d"

    sit(project, press)
    labels = project.labels()
    assert all((labels[one] == labels[two]) == same(one, two) for one in GROUPS for two in GROUPS)
    assert all(record.seconds is not None for record in project.answers())


def test_what_follows_and_nothing_left_are_told(clew, project, blobs):
    left = []
    while (question := project.ask()) is not None:
        left.append("s" if same(question.left, question.right) else "d")
        project.tell(question, "same" if left[-1] == "s" else "different")
    for _ in left:
        project.undo()
    result = clew("ask", "data.csv", keys="".join(f"{key}\n" for key in left))
    assert "more answers follow from this one" in result.stdout
    assert "Nothing is left to ask" in result.stdout


def test_texts_are_asked_about_and_the_reading_of_columns_is_told(clew, blobs):
    texts = ["printer is broken", "the printer jams", "cannot log in", "login page fails"] * 5
    lines = [f"{place},{text} on {'floor' if place % 3 else 'day'} {place}" for place, text in enumerate(texts)]
    (blobs / "tickets.csv").write_text("id,text\n" + "\n".join(lines) + "\n")
    result = clew("ask", "tickets.csv", "--id", "id", "-k", 2, keys="d\n")
    assert result.exit_code == 0, result.output
    assert "columns: read as\ncolumn  read as" in result.stderr
    assert "TF-IDF" in result.stderr
    assert "columns" not in clew("ask", "tickets.csv", keys="").stderr


def test_many_columns_are_counted(clew, blobs):
    names = [f"c{place}" for place in range(20)]
    lines = [",".join(str((row * 7 + place * row) % 10) for place in range(20)) for row in range(12)]
    (blobs / "wide.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    assert clew("ask", "wide.csv", keys="").stderr.endswith("and 8 more columns\n")


def test_stop_after_so_many(ask):
    assert ask("s\nd\nd\nd\n", "-n", 2).exit_code == 0
    assert len(answers()) == 2


def test_the_annotator_is_recorded(ask, monkeypatch):
    ask("d\n", "--annotator", "ada")
    monkeypatch.setenv("CLEW_ANNOTATOR", "bob")
    ask("d\n")
    with Session.open("data.clew") as session:
        assert [record.annotator for record in session.answers()] == ["ada", "bob"]


def test_which_questions_are_answered_by_number(clew, blobs):
    strategy = DenseMinMax(ask="label")
    with Session.create("data.clew", "data.csv", id_column="name", n_clusters=3, strategy=strategy) as session:
        assert session.ask().kind == "which"
    result = clew("ask", "data.clew", keys="9\ns\n1\nd\nu\nq\n")
    assert result.exit_code == 0, result.output
    assert "Which of these does it belong with?" in result.stdout
    assert result.stdout.count("Press the number of a row or Space; ? for help.") == 2
    with Session.open("data.clew") as session:
        first, second, third = session.answers()
        assert (first.kind, first.answer, first.right) == ("which", "same", first.candidates[0])
        assert (second.answer, third.answer) == ("different", "unsure")


def test_a_choice_of_more_than_nine_is_typed_to_enter(project):
    digits = iter(["2", "enter", "x"])
    sitting = _ask.AskingLoop(project, Keys(lambda: next(digits)), "me", ProjectRequest("data.csv"))
    assert sitting._number("1", 12) == 12
    assert sitting._number("1", 12) == 0
    assert sitting._number("7", 9) == 7


def test_cluster_questions_show_rows_of_both(clew, blobs):
    result = clew("ask", "data.csv", "--id", "name", "-k", 3, "--strategy", "cluster-pairs", keys="d\nq\n")
    assert result.exit_code == 0, result.output
    assert "Do these two clusters belong together?" in result.stdout
    assert "one cluster, some of its rows" in result.stdout
    with Session.open("data.clew") as session:
        assert session.answers()[0].kind == "clusters"


def contradicted(session, keys):
    """Somebody decides the question on the screen the other way before it is answered."""
    keys = iter(keys)

    def press():
        key = next(keys, "q")
        if key == "against":
            (question,) = session.pending()
            other = next(name for name in GROUPS if name not in (question.left, question.right))
            said = [(question.left, other, "same"), (other, question.right, "same")]
            session.import_answers(said, annotator="ada")
            return "d"
        return key

    return press


@pytest.mark.parametrize(
    "choice, left, told",
    [
        ("1", 0, "Resolved."),
        ("r", 0, "R cheapest repair: change number"),
        ("p", 0, "Resolved."),
        ("space", 0, "Resolved."),
        ("l", 1, "Postponed"),
        (None, 1, "Postponed"),
    ],
)
def test_a_conflict_is_a_dialogue(project, capsys, choice, left, told):
    sit(project, contradicted(project, ["against", "9", choice]))
    text = capsys.readouterr().out
    assert "contradicts earlier answers or corrections:" in text
    assert "Press a number, R, P, Space or L." in text
    assert told in text
    assert len(project.conflicts()) == left
    if choice == "space":
        assert project.answers()[-1].answer == "unsure"


def test_a_second_opinion_that_differs_is_mentioned_without_a_dialogue(project, capsys):
    project.set(overlap=2)
    first = project.ask("ada")
    project.tell(first, "same")
    keys = iter("dq")
    sit(project, lambda: next(keys))
    text = capsys.readouterr().out
    assert "Somebody has said the opposite about this pair. Both answers are kept: clew review data" in text
    assert "change that answer" not in text
    (conflict,) = project.conflicts()
    assert set(conflict.chain) == {first.left, first.right}


def test_the_dialogue_takes_a_correction_back(project, capsys):
    keys = iter(["against", "1"])

    def press():
        key = next(keys, "q")
        if key == "against":
            (question,) = project.pending()
            project.never(rows=[question.left, question.right], annotator="ada")
            return "s"
        return key

    sit(project, press)
    text = capsys.readouterr().out
    assert "change that answer, or undo that correction" in text
    assert "Resolved." in text
    assert project.conflicts() == []


def test_another_number_of_clusters_is_explained_at_the_start(clew, blobs):
    with Session.create("data.clew", "data.csv", id_column="name", n_clusters=3) as session:
        session.fit()
        session.split(0, session.members(0)[:1])
        session.set(n_clusters=3)
        session.never(clusters=[0, 1])
        session.import_answers(
            [(session.members(one)[0], session.members(two)[0], "different") for one in range(4) for two in range(one)]
        )
        session.fit()
        (note,) = session.progress().notes
    assert note.startswith("4 clusters instead of 3: ")
    assert note.split(":")[0] in clew("ask", "data.csv", keys="").stdout


def test_conflicts_that_wait_are_mentioned_at_the_start(project, clew):
    sit(project, contradicted(project, ["against", "l"]))
    assert "1 contradiction waits to be resolved: clew review data.clew" in clew("ask", "data.csv", keys="").stdout


def test_a_question_that_was_decided_meanwhile_is_not_asked(clew, project):
    question = project.ask()
    project.import_answers([(question.left, question.right, "same")])
    result = clew("ask", "data.csv", keys="q\n")
    with Session.open("data.clew") as session:
        pair = {question.left, question.right}
        assert [one for one in session.pending() if {one.left, one.right} == pair] == session.pending()[:1]
    assert "answer so far" in result.stdout


def test_the_same_question_answered_elsewhere_is_no_loss(project, capsys):
    def press():
        waiting = project.pending()
        if not waiting or project.answers():
            return "q"
        project.tell(waiting[0], "same")
        return "d"

    sit(project, press)
    assert "was answered 'same'" in capsys.readouterr().out
    assert [record.answer for record in project.answers()] == ["same"]


def test_settings_that_can_change_do(ask, clew):
    ask("d\n", "-k", 3)
    result = ask("d\n", "-k", 4, "--strategy", "min-max", "--columns", "x,y")
    assert "changed: columns is now x,y, n_clusters is now 4, strategy is now min-max" in result.stderr
    with Session.open("data.clew") as session:
        assert session.settings["n_clusters"] == 4
    assert "changed" not in ask("d\n", "-k", 4).stderr


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("--id", "x"), "--id x: this project began with name, which cannot change."),
        (("--columns", "colour"), "colour"),
        (("--scale", "wild"), "'wild' is not one of 'auto'"),
        (("--strategy", "wild"), "strategy='wild': expected one of"),
        (("--method", "wild"), 'There is no method "wild"'),
        (("-k", "99"), "n_clusters=99"),
    ],
)
def test_settings_that_cannot_be_are_refused(ask, words, sentence):
    ask("d\n")
    result = ask("d\n", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(answers()) == 1


def test_methods_are_found_however_they_are_written(ask):
    assert ask("d\n", "--method", "PCKMeans").exit_code == 0
    with Session.open("data.clew") as session:
        assert session.settings["method"] == "pck-means"


def test_answers_known_beforehand(ask):
    assert ask("", "-c", "answers.csv").exit_code == 0
    with Session.open("data.clew") as session:
        assert len(session.constraints.must_link) == 2
    assert "clew import PROJECT FILE" in ask("", "-c", "answers.csv").stderr


def test_changed_data_is_told(ask, blobs):
    ask("d\n")
    with open(blobs / "data.csv", "a") as stream:
        stream.write("new,5,5\n")
    assert "note: The data has changed: 1 row is new (new). To add the new rows: clew add data.clew." in ask("").stderr


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("missing.csv",), "missing.csv"),
        (("missing.clew",), "There is no project missing.clew. Create it from its data: clew ask DATA."),
        (("data.csv", "--id", "colour"), 'no column "colour"'),
        (("data.csv", "--project", "answers.csv"), "answers.csv is not a clew project"),
        (("data.csv", "--project", "no/where.clew"), "does not exist"),
        (("data.csv", "--annotator", ""), "annotator=''"),
    ],
)
def test_bad_input_is_exit_2(clew, blobs, words, sentence):
    result = clew("ask", *words, keys="d\n")
    assert result.exit_code == 2
    assert sentence in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "word, place",
    [
        ("tickets.csv", "tickets.clew"),
        ("a/b.c/tickets.parquet", "a/b.c/tickets.clew"),
        ("pictures", "pictures.clew"),
        ("old.clew", "old.clew"),
        ("postgresql://ada@host/db", "postgresql://ada@host/db"),
    ],
)
def test_where_the_project_is(word, place):
    assert place_of(word) == place


def test_a_folder_with_a_dot_keeps_its_name(tmp_path):
    folder = tmp_path / "photos.2024"
    folder.mkdir()
    assert place_of(str(folder)) == f"{folder}.clew"


def test_commands_to_type_next_hold_no_password_and_name_the_project():
    request = ProjectRequest("my tickets.csv", project="postgresql://ada:se:cr/et@host:5432/db")
    assert request.typed == "postgresql://ada@host:5432/db --name 'my tickets'"
    assert ProjectRequest("my tickets.csv").typed == "'my tickets.clew'"
    assert ProjectRequest("postgresql://host/db").typed == "postgresql://host/db"
    assert without_password("postgresql://:x@host/db") == "postgresql://@host/db"


def failing(error):
    class Plan:
        def run(self):
            raise error

    return Plan


def test_a_fit_that_cannot_be_is_told_once_and_asking_goes_on(project, monkeypatch, capsys):
    monkeypatch.setattr(_ask, "_EVENTS_PER_FIT", 1)
    monkeypatch.setattr(project, "plan_fit", failing(ParameterError("Too few rows.")))
    sit(project, iter(["d", "d", "d", "q"]).__next__, is_live=False)
    assert capsys.readouterr().err == "warning: No clusters for now. Too few rows.\n"
    assert len(project.answers()) == 3


def test_a_bug_in_a_fit_is_not_hidden(project, monkeypatch):
    monkeypatch.setattr(project, "plan_fit", failing(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError, match="bug"):
        _ask.BackgroundFits(project, wait=True).refresh()


class Pty:
    """The real command on a terminal of its own."""

    def __init__(self, folder, *words):
        self.process, self._file = pty.fork()
        if self.process == 0:  # pragma: no cover
            os.chdir(folder)
            os.environ.update(COLUMNS="80", TERM="xterm-256color")
            code = "from clew.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", code, *words])
        self.text = ""

    def wait_for(self, words):
        """Read on until the words appear; what was read before does not count."""
        start = len(self.text)
        while words not in self.text[start:]:
            assert select.select([self._file], [], [], 60)[0], f"waited for {words!r}, got {self.text!r}"
            try:
                found = os.read(self._file, 65536)
            except OSError:
                found = b""
            assert found, f"ended before {words!r}: {self.text!r}"
            self.text += found.decode()

    def press(self, keys):
        os.write(self._file, keys.encode())

    def end(self):
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self._file)
        return code


def test_single_keys_on_a_real_terminal(blobs):
    terminal = Pty(blobs, "ask", "data.csv", "--id", "name", "-k", "3")
    terminal.wait_for("quit")
    for key in ("d", "\x1b[C", "u", "\x7f", " "):
        terminal.press(key)
        terminal.wait_for("quit")
    terminal.press("c")
    terminal.wait_for("Comment (Enter ends it)")
    terminal.press("schöx\x7fn\r")
    terminal.wait_for("Comment: schön")
    terminal.press("\x1b[Dq")
    terminal.wait_for("Every answer is saved")
    assert terminal.end() == 0
    assert "\x1b[" in terminal.text
    with Session.open(blobs / "data.clew") as session:
        records = session.answers()
    assert [record.answer for record in records] == ["different", "same", "unsure", "different"]
    assert records[-1].comment == "schön"
    assert all(record.seconds is not None for record in records)


@pytest.mark.slow
def test_ctrl_c_loses_nothing_and_leaves_the_terminal_as_it_was(blobs):
    terminal = Pty(blobs, "ask", "data.csv", "--id", "name")
    terminal.wait_for("quit")
    terminal.press("d")
    terminal.wait_for("quit")
    terminal.press("\x03")
    terminal.wait_for("every answer is saved in data.clew")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert [answer for *_, answer in answers(blobs / "data.clew")] == ["different"]


def test_piped_output_has_no_colours(ask):
    assert "\x1b" not in ask("d\n").stdout


def test_status_counts_what_was_asked(ask, clew):
    ask("d\ns\n")
    told = json.loads(clew("status", "data.csv", "--json").stdout)
    assert told["answers"] == {"different": 1, "same": 1}


def test_a_second_opinion_is_marked(project, monkeypatch, capsys):
    question = project.ask("me")
    sit(project, lambda: "q")
    assert "looks doubtful" not in capsys.readouterr().out
    second = replace(question, check=True, why="An answer looks doubtful.")
    monkeypatch.setattr(project, "pending", list)
    monkeypatch.setattr(project, "ask", lambda annotator: second)
    sit(project, lambda: "q")
    assert "An answer looks doubtful." in capsys.readouterr().out
