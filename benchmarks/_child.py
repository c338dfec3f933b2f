"""Runs one function of a benchmark in this process: `python -m benchmarks._child MODULE:FUNCTION JSON`."""

import importlib
import json
import sys

from threadpoolctl import threadpool_limits

module, _, function = sys.argv[1].partition(":")
work = getattr(importlib.import_module(module), function)
with threadpool_limits(1):
    print(json.dumps(work(**json.loads(sys.argv[2]))))
