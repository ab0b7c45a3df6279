"""Imports of jobs: from their zip or from Glue, except for jobs that read the source."""

from __future__ import annotations

import subprocess
import sys
import zipfile

from cdclake import naming
from cdclake.deployed_jobs import AT_SOURCE, JOBS
from cdclake.job_package import build_job_package

WITHOUT = """
import importlib, sys
lacking = ("adbc_driver_postgresql", "duckdb", "psycopg", "pydantic", "ruamel")
sys.modules.update(dict.fromkeys(lacking, None))
for job in sys.argv[1:]:
    print(importlib.import_module("cdclake.jobs." + job).__file__)
"""


def test_the_other_jobs_are_imported_from_the_zip_without_what_glue_lacks():
    package = str(build_job_package())
    jobs = [job for job in JOBS if job not in (*AT_SOURCE, naming.LOAD_JOB)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT, *jobs],
        env={"PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{package}/cdclake/jobs/{job}.py" for job in jobs]


def test_the_zip_has_one_root_and_nothing_that_no_job_imports():
    with zipfile.ZipFile(build_job_package()) as archive:
        names = archive.namelist()
    assert {"cdclake/naming.py", "cdclake/jobs/runtime/session.py"} <= set(names)
    assert len(names) == len(set(names))
    assert {name.split("/")[0] for name in names} == {"cdclake"}
    packages = {name.split("/")[1] for name in names}
    assert not packages & {"cli", "config", "functions", "local", "stacks"}
