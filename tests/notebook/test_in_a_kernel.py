"""The cells of docs/notebook.md in a Jupyter kernel, as JupyterLab runs them: displays, the bar, a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import BLOCK

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"
REFUSED = "mw.anonymize(frame, policy.require(mw.KAnonymity(401)))"


@pytest.mark.long
def test_the_cells_of_the_page_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "state"))
    first = next(BLOCK.finditer(PAGE.read_text(encoding="utf-8")))["code"]
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (first, "policy", REFUSED)]
    nbclient.NotebookClient(notebook, allow_errors=True, resources={"metadata": {"path": tmp_path}}).execute()
    release, policy, refused = (cell.outputs for cell in notebook.cells)
    assert [output.data["text/html"] for output in release[:-1]] == [""], "the bar is taken away"
    assert "Every requirement holds" in release[-1].data["text/html"]
    assert "k-anonymity" in policy[-1].data["text/html"]
    assert refused[0].data["text/html"] == "", "also beside a refusal"
    assert refused[-1].ename == "PolicyNotMet"
    assert len(refused[-1].traceback) <= 3, "the line that called, and the message"
