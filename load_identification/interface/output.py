"""Output paths of programs, checked before the work; errors are one line."""

from __future__ import annotations

from pathlib import Path

from load_identification.errors import ParameterError


def check_output(option: str, path: Path | None) -> None:
    """Raise ParameterError if a file cannot be written; None: no output."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ParameterError(f'{option} {path} must be a file in a folder that exists')


def write_output(option: str, path: Path, text: str) -> None:
    """Write a text; raise ParameterError on failure."""
    try:
        path.write_text(text, encoding='utf-8')
    except OSError as error:
        raise ParameterError(f'{option} {path} cannot be written: {error.strerror}') from error


def make_folder(option: str, folder: Path) -> None:
    """Make a folder and its parents if missing; raise ParameterError on failure."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f'{option} {folder} cannot be made: {error.strerror}') from error
