"""What docs/jobs.md tells people to type, read back from the page."""

from __future__ import annotations

import json
import re
import shlex

from scripts.jobs_page import PAGE


def deployed_arguments() -> dict[str, dict[str, str]]:
    """By job the arguments that the deployment sets, as its table has them."""
    return {
        job: dict(re.findall(r"^\| `(--\w+)` \| `(.*?)` \|", text.split("| set per run")[0], re.M))
        for job, text in _sections().items()
    }


def arguments_of_a_run() -> dict[str, dict[str, str]]:
    """By job the arguments in the command that starts it by hand."""
    found = {}
    for job, text in _sections().items():
        words = shlex.split(text.split("```sh\n")[1].split("\n```")[0])
        assert words[:4] == ["aws", "glue", "start-job-run", "--job-name"]
        assert words[4] == f"shop-prod-{job}"
        found[job] = json.loads(words[6]) if len(words) > 5 else {}
    return found


def _sections() -> dict[str, str]:
    jobs = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]
    return {text.split("\n")[0]: text for text in jobs}
