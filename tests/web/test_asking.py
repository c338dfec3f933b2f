"""Questions and answers over HTTP."""

import pytest

from clew import Session
from clew.exceptions import StorageError, UnknownOutcomeError
from tests.web.conftest import truth


def ask(client, **body):
    response = client.post("/api/questions/next", json=body)
    assert response.status_code == 200
    return response.json()


def tell(client, question, answer, **more):
    return client.post("/api/answers", json={"question": question["id"], "answer": answer, **more})


def test_the_loop_of_the_design(client, answered):
    assert ask(client, annotator="ann") is None
    progress = client.get("/api/progress").json()
    assert progress["answered"] == len(answered) and progress["groups"] == 3
    assert progress["can_stop"] and progress["reason"] and progress["seconds"] == 1.5
    labels = client.get("/api/labels").json()
    assert len({labels[row] for row in "abcd"}) == 1 and len(set(labels.values())) == 3
    listed = client.get("/api/answers").json()
    assert [one["id"] for one in listed] == [one["id"] for one in answered]
    assert {one["annotator"] for one in listed} == {"ann"}
    assert all(one["answer"] == truth(one["left"], one["right"]) for one in listed)


def test_a_question_names_two_rows_and_says_why(client):
    question = ask(client)
    assert {question["left"], question["right"]} < set("abcdefghijkl") and question["why"]
    assert question["annotator"] == "me" and question["expires"] > 0


def test_an_answer_is_created_once(client, session):
    question = ask(client, annotator="ann")
    first = tell(client, question, "same", annotator="ann", seconds=2, comment="sure", flag=True)
    again = tell(client, question, "same", annotator="ann", seconds=3)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    (record,) = session.answers()
    assert (record.seconds, record.comment, record.flag) == (2.0, "sure", True)


def test_another_answer_to_the_same_question(client):
    question = ask(client)
    told = tell(client, question, "same").json()
    refused = tell(client, question, "different")
    assert refused.status_code == 409 and f"revise answer {told['id']}." in refused.json()["error"]
    revised = client.patch(f"/api/answers/{told['id']}", json={"answer": "different", "annotator": "bob"})
    assert revised.status_code == 200 and revised.json()["id"] == told["id"]
    (record,) = client.get("/api/answers").json()
    assert record["answer"] == "different" and record["revised"]


def test_a_contradiction_is_recorded_and_told(client, session):
    session.import_answers([("a", "b", "same"), ("b", "c", "same")], annotator="ann")
    session.import_answers([("a", "c", "different")], annotator="bob")
    (conflict,) = client.get("/api/conflicts").json()
    assert set(conflict["chain"]) == {"a", "b", "c"} and conflict["message"]
    path = f"/api/conflicts/{conflict['id']}/resolve"
    assert client.post(path, json={"how": "shout"}).status_code == 422
    assert client.post("/api/conflicts/999/resolve", json={"how": "unsure"}).status_code == 404
    left = client.post(path, json={"how": "change", "answer_id": conflict["id"], "answer": "same"})
    assert left.status_code == 200 and left.json() == []


def test_a_contradiction_ends_when_its_correction_is_taken_back(client, session):
    made = session.never(rows=["a", "b"])
    session.import_answers([("a", "b", "same")], annotator="bob")
    (conflict,) = client.get("/api/conflicts").json()
    assert conflict["corrections"] == [made.id]
    path = f"/api/conflicts/{conflict['id']}/resolve"
    refused = client.post(path, json={"how": "withdraw", "correction": 999})
    assert refused.status_code == 400 and "Correction 999 is not part of conflict" in refused.json()["error"]
    left = client.post(path, json={"how": "withdraw", "correction": made.id})
    assert left.status_code == 200 and left.json() == []


def test_undo_gives_the_question_back(client):
    assert client.post("/api/undo").json() == {"undone": None, "question": None}
    question = ask(client, annotator="ann")
    told = tell(client, question, "unsure").json()
    assert client.post("/api/undo", json={"annotator": "bob"}).json()["undone"] is None
    back = client.post("/api/undo", json={"annotator": "ann"}).json()
    assert back["undone"]["seq"] == told["id"] and back["undone"]["undone"]
    assert back["question"]["id"] == question["id"]
    assert tell(client, question, "same").status_code == 201


def test_a_batch_for_a_page_that_shows_ahead(client):
    batch = ask(client, annotator="ann", n=5)
    assert len({one["id"] for one in batch}) == 5
    held = [one["id"] for one in batch[:2]]
    reloaded = ask(client, annotator="ann", n=3, holding=held)
    assert [one["id"] for one in reloaded] == [one["id"] for one in batch[2:]]


def test_questions_of_a_client_that_was_lost_come_back_when_nothing_else_is_left(client):
    first = ask(client, annotator="ann", n=50)
    assert len(first) == 11  # the first of twelve rows against each of the others
    assert ask(client, annotator="bob") is None
    again = ask(client, annotator="ann")
    assert again["id"] == first[0]["id"]


def test_no_question_goes_to_two_people(client):
    given = [ask(client, annotator=f"person {n}") for n in range(3) for _ in range(2)]
    pairs = [frozenset((one["left"], one["right"])) for one in given]
    assert len(set(pairs)) == len(pairs) and len({one["id"] for one in given}) == len(given)
    assert {one["id"] for one in given} <= {one["id"] for one in client.get("/api/questions").json()}


def test_what_was_drawn_ahead_is_not_asked_once_it_is_known(client, session):
    ask(client, annotator="ann")
    client.app.state.worker.ahead.fill("ann")
    ahead = max(session.pending(), key=lambda one: one.id)
    session.import_answers([(ahead.left, ahead.right, truth(ahead.left, ahead.right))])
    assert ask(client, annotator="ann")["id"] != ahead.id


def test_history_tells_everything_newest_first(client, answered):
    events = client.get("/api/history?limit=1000").json()
    assert [event["seq"] for event in events] == list(range(len(events), 0, -1))
    assert events[-1]["kind"] == "create" and {"answer"} <= {event["kind"] for event in events}
    page = client.get(f"/api/history?before={events[3]['seq']}&limit=2").json()
    assert page == events[4:6]
    client.post("/api/undo")
    assert [event["seq"] for event in client.get("/api/history").json() if event["undone"]] == [answered[-1]["id"]]


def test_answers_can_be_chosen_by_person_and_place(client, session):
    session.import_answers([("a", "b", "same"), ("c", "d", "same")], annotator="ann")
    session.import_answers([("e", "f", "same")], annotator="bob")
    everything = client.get("/api/answers").json()
    assert len(everything) == 3
    assert client.get("/api/answers?annotator=bob").json() == everything[2:]
    assert client.get(f"/api/answers?after={everything[0]['id']}&limit=1").json() == everything[1:2]


def test_agreement_and_review(client, session):
    session.set(overlap=2)
    for person, said in (("ann", "same"), ("bob", "different")):
        session.import_answers([("a", "b", said)], annotator=person)
    found = client.get("/api/agreement").json()
    assert found["pairs"][0]["answers"] == {"ann": "same", "bob": "different"} and not found["pairs"][0]["agree"]
    assert found["kappa"][0]["annotators"] == ["ann", "bob"]
    assert client.get("/api/review").status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"question": 999, "answer": "same"}, 404, None),
        ({"question": 1, "answer": "perhaps"}, 400, None),
        ({"question": "one", "answer": "same"}, 422, "question"),
        ({"question": -1, "answer": "same"}, 422, "question"),
        ({"question": 2**40, "answer": "same"}, 422, "question"),
        ({"answer": "same"}, 422, "question"),
        ({"question": 1, "answer": "same", "confidence": 0}, 422, "confidence"),
        ({"question": 1, "answer": "same", "seconds": -1}, 422, "seconds"),
        ({"question": 1, "answer": "same", "annotator": "\x00"}, 422, "annotator"),
        ({"question": 1, "answer": "same", "annotator": "x" * 201}, 422, "annotator"),
        ({"question": 1, "answer": "same", "comment": "x" * 10_001}, 422, "comment"),
        ({"question": 1, "answer": "same", "conf": 1}, 422, "conf"),
    ],
)
def test_answers_that_do_not_fit(client, body, status, field):
    ask(client)
    response = client.post("/api/answers", json=body)
    assert response.status_code == status
    told = response.json()
    assert told["error"].endswith(".") and told.get("field") == field
    assert client.get("/api/answers").json() == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"annotator": "\\ud800"}', b'{"n": 1e999}', b"[" * 100_000,
     b'{"n": ' + b"9" * 10_000 + b"}", b'{"n": NaN}'],
)  # fmt: skip
def test_bodies_that_are_no_json_of_ours(client, content):
    response = client.post("/api/questions/next", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422) and response.json()["error"]


def test_a_form_is_told_to_be_json(client):
    response = client.post("/api/questions/next", data={"annotator": "ann"})
    assert response.status_code == 422 and "application/json" in response.json()["error"]


def test_a_database_that_cannot_be_written(client, session, monkeypatch):
    question = ask(client)
    for error, status in (
        (StorageError("Nothing was recorded.", is_full=True), 507),
        (StorageError("Nothing was recorded."), 503),
        (UnknownOutcomeError("It is unknown whether this was recorded."), 504),
    ):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(type(session), "tell", fail)
        refused = tell(client, question, "same")
        assert (refused.status_code, refused.json()) == (status, {"error": str(error)})
    monkeypatch.undo()
    assert client.get("/api/answers").json() == []
    assert tell(client, question, "same").status_code == 201


def test_a_bug_tells_no_secrets(client, session, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("secret")

    monkeypatch.setattr(type(session), "review", fail)
    response = client.get("/api/review")
    assert response.status_code == 500 and "bug" in response.json()["error"] and "secret" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "RuntimeError: secret" in caplog.text


def test_answers_of_another_process_are_seen(client, tmp_path):
    with Session.open(tmp_path / "toy.clew") as other:
        other.import_answers([("a", "b", "same")], annotator="ann")
    client.app.state.worker._beat()
    assert len(client.get("/api/answers").json()) == 1


def test_unknown_routes(client):
    response = client.get("/api/nothing")
    assert (response.status_code, response.json()) == (404, {"error": "There is nothing here."})


def test_a_quick_list_is_shown_until_all_evidence_is_weighed(client, answered):
    wrong = "id_1,id_2,answer\na,d,different\n"
    client.post("/api/answers/import?name=wrong.csv&annotator=bob", content=wrong)
    client.get("/api/labels")
    first = client.get("/api/review").json()
    assert (first["thorough"], first["working"], first["problem"]) == (False, True, None)
    client.app.state.worker.jobs.settle()
    found = client.get("/api/review").json()
    assert (found["thorough"], found["problem"]) == (True, None)
    number = client.get("/api/answers").json()[-1]["id"]
    doubted = next(one for one in found["items"] if one["answer_id"] == number)
    assert (doubted["answer"], doubted["likely"], doubted["annotator"]) == ("different", "same", "bob")
    kept = client.post(f"/api/answers/{number}/confirm", json={"annotator": "cleo"}).json()
    assert (kept["answer"], kept["confirmed"]) == ("different", "cleo")
    again = client.get("/api/review").json()
    assert number not in [one["answer_id"] for one in again["items"]]
    assert not again["working"]
    assert client.post("/api/answers/9999/confirm", json={}).status_code == 404


def test_an_answer_is_refused_if_its_question_is_about_other_rows(client):
    question = client.post("/api/questions/next", json={}).json()
    body = {"question": question["id"], "answer": "unsure", "about": [question["left"], "l" * 9]}
    refusal = client.post("/api/answers", json=body)
    assert refusal.status_code == 404 and "lllllllll" in refusal.json()["error"]
    body["about"] = [question["left"], question["right"]]
    assert client.post("/api/answers", json=body).status_code == 201


def test_a_page_of_another_project_is_refused_everything(client):
    project = client.get("/api/progress").json()["project"]
    for name, status in ((project, 200), ("another", 412)):
        assert client.get("/api/progress", headers={"X-Clew-Project": name}).status_code == status
        assert client.post("/api/undo", headers={"X-Clew-Project": name}).status_code == status


def test_a_name_belongs_to_the_first_browser_that_comes_with_it(client):
    def is_taken(name, browser):
        return client.post("/api/visits", json={"annotator": name, "browser": browser}).json()["is_taken"]

    assert [is_taken("me", "one"), is_taken("me", "one"), is_taken("me", "two")] == [False, False, True]
    client.post("/api/questions/next", json={"annotator": "ann"})
    assert is_taken("ann", "one")  # who has questions is at work somewhere
