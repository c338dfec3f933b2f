"""What the server and the shell lean on."""

import pytest

from clew import Session
from clew.exceptions import AnsweredError, NotFoundError, StorageError

ROWS = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]


@pytest.fixture
def session(store_url):
    with Session.create(store_url, ROWS, n_clusters=2) as session:
        yield session


def test_what_is_not_there_is_told_apart_from_a_bad_value(session):
    for call in (
        lambda: session.tell(99, "same"),
        lambda: session.revise(99, "same"),
        lambda: session.resolve(99, "soft"),
        lambda: session.row("nobody"),
        lambda: session.merge(0, 99),
        lambda: session.members(99),
    ):
        with pytest.raises(NotFoundError, match=r"99|nobody"):
            call()


def test_another_answer_to_the_same_question(session):
    question = session.ask()
    session.tell(question, "same")
    with pytest.raises(AnsweredError, match=r"revise answer \d"):
        session.tell(question, "different")


def test_a_database_that_cannot_be_written(sqlite_url):
    with Session.create(sqlite_url, ROWS, n_clusters=2) as session:
        question = session.ask()
        before = session.version
        with session._project.store._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only=ON")
        with pytest.raises(StorageError, match="Nothing was recorded") as caught:
            session.tell(question, "same")
        assert not caught.value.is_full
        assert session.version == before and session.answers() == []


def test_a_question_is_worth_asking_until_its_answer_is_known(session):
    questions = session.ask(n=2)
    assert all(session.worth_asking(one) for one in questions)
    session.tell(questions[0], "unsure")
    assert not session.worth_asking(questions[0])
    session.import_answers([(questions[1].left, questions[1].right, "same")])
    assert not session.worth_asking(questions[1].id)


def test_members_begin_with_the_most_typical(session):
    assert session.is_stale and session.cluster_of(1) is None
    labels = session.fit()
    assert not session.is_stale and session.cluster_of(1) == labels[1]
    members = session.members(labels[1])
    assert members[0] == 1 and sorted(members) == [0, 1, 2]


def test_the_rows_of_a_folder_of_images_are_named_by_their_files(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="needs the extra images")
    (tmp_path / "pictures").mkdir()
    for place in range(6):
        image.new("L", (8, 8), 40 * place).save(tmp_path / "pictures" / f"{place}.png")
    names = [f"{place}.png" for place in range(6)]
    with Session.create(tmp_path / "p.clew", tmp_path / "pictures", n_clusters=2) as session:
        assert session.ids == names and session.settings["id_column"] == "file"
        session.import_answers([("0.png", "5.png", "different")])
    with Session.open(tmp_path / "p.clew") as session:
        assert session.ids == names
