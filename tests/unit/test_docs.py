"""All examples in the docs run and print the shown output, and tables agree with the code."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import runpy
import shlex
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

import clew
import clew.active
import clew.audit
import clew.constraints
import clew.datasets
import clew.dissimilarity
import clew.evaluation
import clew.exceptions
from clew._registry import by_method_name

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    *sorted(DOCS.glob("*.md")),
]
MODULES = ["clew", *sorted(module.name for module in pkgutil.walk_packages(clew.__path__, "clew."))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Pages, examples and modules that need torch.
DEEP = ("deep.md", "digits_embedding.py", "clew.deep.")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the text block right after it, which shows its output."""

    language: str
    code: str
    line: int
    output: str | None


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    found = []
    for fence, following in zip_longest(fences, fences[1:]):
        shown = following is not None and following[1] == "text" and not text[fence.end() : following.start()].strip()
        line = text.count("\n", 0, fence.start()) + 2
        found.append(Block(fence[1], fence[2], line, following[2] if shown else None))
    return [block for block in found if block.language == language]


def run_as_doctest(block: Block, page: Path, names: dict[str, object]) -> str:
    test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line - 1)
    told = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(test, out=told.write, clear_globs=False)
    names.update(test.globs)
    return told.getvalue()


def run_as_script(block: Block, page: Path, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
    if block.output is None or printed.getvalue().strip() == block.output.strip():
        return ""
    return f"{page.name} line {block.line} prints:\n{printed.getvalue()}"


def skip_without_torch(name):
    if name.startswith(DEEP):
        pytest.importorskip("torch", reason="needs the extra deep")


def identified(path: Path) -> str:
    return str(path.relative_to(ROOT))


# The page about networks trains some: a minute.
@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page.name == "deep.md" else page
        for page in PAGES
        if blocks(page, "python")
    ],
    ids=identified,
)
def test_python_blocks_of_a_page_run_in_order_and_print_what_they_show(page, tmp_path, monkeypatch):
    skip_without_torch(page.name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    wrong = [
        (run_as_doctest if block.code.startswith(">>>") else run_as_script)(block, page, names)
        for block in blocks(page, "python")
    ]
    assert "\n".join(filter(None, wrong)) == ""


def test_commands_of_the_shell_pages_run(tmp_path, monkeypatch):
    pytest.importorskip("typer", reason="needs the extra cli")
    from tests.command import type_in

    monkeypatch.chdir(tmp_path)
    commands = [
        line
        for page in (DOCS / "shell.md", ROOT / "README.md")
        for block in blocks(page, "sh")
        for line in block.code.splitlines()
        if line.startswith("clew ") and not line.startswith("clew serve ")  # a server runs until it is stopped
    ]
    assert commands[0] == "clew demo"
    ran = {line: type_in(*shlex.split(line)[1:]).exit_code for line in commands}
    assert ran == dict.fromkeys(commands, 0)


# The gallery draws every method, and the embedding trains a network: a minute each.
@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, marks=pytest.mark.slow) if path.name in ("gallery.py", "digits_embedding.py") else path
        for path in EXAMPLES
    ],
    ids=identified,
)
def test_examples_run_and_print(example, tmp_path, monkeypatch, capsys):
    skip_without_torch(example.name)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.count("\n") >= 2


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_print_what_they_show(name, tmp_path, monkeypatch):
    skip_without_torch(name)
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=identified)
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code forges make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_quick_start_holds_exactly_the_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Quick start\n(.*?)^## ", readme, re.MULTILINE | re.DOTALL)[1]
    marked = re.findall(r"<!-- newcomer: (\w+) -->\n```sh\n(.*?)\n```", section)
    assert marked == [("demo", "make demo"), ("test", "make test")]
    assert section.count("```") == 4


def test_readme_shows_the_picture_of_the_demo():
    picture = re.search(r"!\[.+\]\((.+?)\)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_table_of_methods_agrees_with_the_registry():
    rows = re.findall(
        r"^\| `([a-z-]+)` \| `(\w+)` \|(.+)\|$", (DOCS / "methods.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    told = {name: (cls, *[cell.strip() for cell in rest.split("|")][:5]) for name, cls, rest in rows}
    yes = {True: "yes", False: "no"}
    assert told == {
        name: (cls.__name__, can.labels, can.must_link, can.cannot_link, yes[can.sparse], yes[can.sample_weight])
        for name, cls in by_method_name("clusterer").items()
        for can in [cls().capabilities]
    }


def test_table_of_capabilities_is_the_one_that_the_script_writes():
    names = runpy.run_path(str(DOCS / "methods_table.py"))
    page = (DOCS / "methods.md").read_text(encoding="utf-8")
    shown = page.partition(names["BEGIN"])[2].partition(names["END"])[0]
    assert shown == names["capabilities_table"](), "python docs/methods_table.py writes the table anew"


def test_gallery_shows_every_method():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for name, cls in by_method_name("clusterer").items():
        picture = f"images/gallery/{name}.png"
        assert f"![{cls.__name__} without and with constraints]({picture})" in page
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")


def test_every_key_of_a_paper_in_the_source_is_in_the_references():
    keys = re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    used = {
        key
        for path in (ROOT / "src").rglob("*.py")
        for key in re.findall(r"`([a-z]+[0-9]{4}[a-z]?)`", path.read_text(encoding="utf-8"))
    }
    assert used and used <= set(keys)
    assert keys == sorted(set(keys))


def test_errors_page_names_every_class():
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    named = [
        name for name, value in vars(clew.exceptions).items() if isinstance(value, type) and name.endswith("Error")
    ]
    assert [name for name in named if not re.search(rf"`(clew\.exceptions\.)?{name}`", page)] == []


def test_api_page_names_everything_public():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    public = [
        *clew.__all__,
        *clew.active.__all__,
        *clew.audit.__all__,
        *clew.evaluation.__all__,
        *clew.datasets.__all__,
        *clew.dissimilarity.__all__,
    ]
    public += [name for name in vars(clew.Constraints) if not name.startswith("_")]
    attributes = clew.Constraints.__annotations__
    assert [name for name in public if f"`{name}`" not in page and name not in attributes] == []


def test_constraints_page_names_every_argument():
    page = (DOCS / "constraints.md").read_text(encoding="utf-8")
    assert [name for name in clew.Constraints.__annotations__ if f"`{name}`" not in page] == []


def test_shell_page_lists_the_exit_codes():
    exits = pytest.importorskip("clew.cli._exits", reason="needs the extra cli")
    codes = {0, exits.NO, exits.BAD_INPUT, exits.WORK_LIMIT, exits.BUG, exits.INTERRUPTED, exits.BROKEN_PIPE}
    page = (DOCS / "shell.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == codes


def test_architecture_page_names_files_and_functions_that_exist():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    folders = (ROOT / "src" / "clew", ROOT)
    wrong = []
    for step in re.split(r"\n(?=\d+\. |\n)", page):
        named = re.findall(r"[\w/]+\.(?:py|js|toml)\b", step)
        found = [next((folder / name for folder in folders if (folder / name).is_file()), None) for name in named]
        wrong += [name for name, path in zip(named, found, strict=True) if path is None]
        text = "\n".join(path.read_text(encoding="utf-8") for path in found if path is not None)
        if text:
            wrong += [name for name in re.findall(r"(\w+)\(\)`", step) if not re.search(rf"\b{name}\b", text)]
    assert wrong == []


def test_benchmarks_page_shows_every_benchmark():
    from benchmarks.__main__ import BENCHMARKS

    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert [name for name in BENCHMARKS if f"python -m benchmarks {name}" not in page] == []


def test_changelog_and_citation_know_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    kinds = set(re.findall(r"^### (\w+)$", changelog, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Fixed", "Faster", "Removed", "Results"}
    assert re.search(r"^## ([\d.]+)", changelog, re.MULTILINE)[1] == clew.__version__
    assert f"\nversion: {clew.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
