"""Where programs write: refused before the work is done rather than after, in one line."""

from __future__ import annotations

from pathlib import Path

from load_identification.errors import ParameterError


def check_output(option: str, path: Path | None) -> None:
    """Raise ParameterError for a file that cannot be written; None: nothing is to be."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ParameterError(f'{option} {path} must be a file in a folder that exists')


def write_output(option: str, path: Path, text: str) -> None:
    """Write a text; raises ParameterError."""
    try:
        path.write_text(text, encoding='utf-8')
    except OSError as error:
        raise ParameterError(f'{option} {path} cannot be written: {error.strerror}') from error


def make_folder(option: str, folder: Path) -> None:
    """Make a folder, and those above it, unless it is there; raises ParameterError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f'{option} {folder} cannot be made: {error.strerror}') from error
