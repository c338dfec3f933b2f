"""Readers for files of answers of other tools, one module per tool. Each reader produces `AnswerTable`."""

from clew.constraints.formats._registry import NAMES, read_document, recognised, records_of_manager

__all__ = ["NAMES", "read_document", "recognised", "records_of_manager"]
