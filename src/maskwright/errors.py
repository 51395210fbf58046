"""Everything that can go wrong, as one tree. A message names the column, the value and the remedy.

    MaskwrightError            exit  what it means
    ├── UsageError                2  the call itself does not make sense
    ├── InputError                2  the table cannot be read, or does not fit the policy
    ├── PolicyError               2  the policy file or object is not valid
    │   └── HierarchyError        2  a hierarchy is not one, or misses a value
    ├── DestinationError          2  the release cannot be written there
    ├── PolicyNotMet              1  no release satisfies the policy; nothing was published
    ├── NotVerified               1  the bytes on disk do not hold what was promised; nothing was published
    └── Cancelled               130  somebody asked to stop; nothing was published

`str(error)` is one line. `error.details` holds further lines for `--verbose`; neither ever contains a
value of an identifier column.
"""

import traceback
from pathlib import Path

from maskwright.addresses import without_passwords

HERE = Path(__file__).parent
LONGEST = 1_500  # characters of a message: nobody reads more, and a name may have millions


def one_line(message: str) -> str:
    """A message that prints as one line wherever it is shown.

    Names and values come from files: a line end, an escape sequence of a terminal, text that runs backwards or half a
    surrogate pair is written as its code, and what is too long is cut in the middle, because the remedy is at the end.
    Passwords in addresses are left out.
    """
    message = _cut(without_passwords(message))
    if message.isprintable():
        return message
    return _cut("".join(c if c.isprintable() else ascii(c)[1:-1] for c in message))  # codes are longer


def _cut(message: str) -> str:
    if len(message) <= LONGEST:
        return message
    return f"{message[: LONGEST * 2 // 3]} […] {message[-LONGEST // 3 :]}"


class MaskwrightError(Exception):
    exit_code = 2

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(one_line(message))
        self.details = without_passwords(details)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the caller's lines and the message, not the way through this library.

        IPython asks for it. `%debug` still goes through every frame.
        """
        calls = traceback.extract_tb(self.__traceback__)
        foreign = [
            c
            for c in calls
            if "IPython" not in Path(c.filename).parts and HERE not in Path(c.filename).parents
        ]
        return [*(line.rstrip() for line in traceback.format_list(foreign)), f"{type(self).__name__}: {self}"]


class UsageError(MaskwrightError):
    pass


class InputError(MaskwrightError):
    pass


class PolicyError(MaskwrightError):
    pass


class HierarchyError(PolicyError):
    pass


class DestinationError(MaskwrightError):
    pass


class PolicyNotMet(MaskwrightError):  # noqa: N818 - it is a finding, not a fault of the program
    exit_code = 1
    alternatives: object = None  # what else would work, where that was tried


class NotVerified(MaskwrightError):  # noqa: N818
    exit_code = 1


class Cancelled(MaskwrightError):  # noqa: N818
    exit_code = 130


def is_interruption(problem: BaseException) -> bool:
    """Is this what a library made of a Ctrl-C, in a query or while it looked at a value of Python?"""
    return isinstance(problem, KeyboardInterrupt) or str(problem).rstrip(": \n").endswith(
        ("Query interrupted", "KeyboardInterrupt")
    )


def system_refused(problem: OSError) -> str:
    """What the system refused: the disk is full, a folder is protected, too many files are open …"""
    where = f": {str(problem.filename)!r}" if problem.filename is not None else ""
    return f"the system reports: {problem.strerror or type(problem).__name__}{where}; nothing was published"
