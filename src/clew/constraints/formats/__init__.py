"""Files of answers that other tools write, one module per tool; all become `Records`."""

from clew.constraints.formats._registry import NAMES, read_document, recognised, records_of_manager

__all__ = ["NAMES", "read_document", "recognised", "records_of_manager"]
