"""The command line: which command lives where, and how errors and exit codes come out.

Exit codes: 0 nothing to report, 1 findings or a failed check, 2 usage, bad input, missing device, internal error.
"""

from __future__ import annotations

# ruff: noqa: E402
import gc

gc.set_threshold(200_000, 50, 50)  # first of all: what is loaded and built lives to the end, so there is no garbage

import errno
import io
import os
import sys
from contextlib import suppress
from importlib import import_module

import click

from bankcheck import __version__
from bankcheck.errors import BankcheckError
from bankcheck.filenames import shown_name

COMMANDS = {
    "analyze": "bankcheck.commands.analyze",
    "count": "bankcheck.commands.count",
    "ldmatrix": "bankcheck.commands.ldmatrix",
    "lint": "bankcheck.commands.lint",
    "explain": "bankcheck.commands.explain",
    "verify": "bankcheck.commands.verify",
    "profile": "bankcheck.commands.profile",
    "solve": "bankcheck.commands.solve",
}
"""Each command's module; it is imported only when the command is used, and holds it as `command`."""


class LazyGroup(click.Group):
    """A group that imports a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="bankcheck %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """CUDA shared-memory bank conflicts: found, proved, explained and fixed without a GPU."""


def main() -> None:
    """Run the command line and exit with the project's exit codes."""
    debug = "--debug" in sys.argv[1:]
    if debug:
        sys.argv.remove("--debug")
    if sys.stdout is None:  # closed by the caller, who wants the exit code
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # not every terminal has every character
    color = False if os.environ.get("NO_COLOR") else None
    try:
        code = cli.main(prog_name="bankcheck", standalone_mode=False, color=color)
        sys.stdout.flush()
    except BankcheckError as error:
        code = _fail(error.render(), debug)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        code = 2
    except click.UsageError as error:
        hint = f" (see '{error.ctx.command_path} --help')" if error.ctx is not None else ""
        code = _fail(error.format_message() + hint, debug)
    except click.ClickException as error:
        code = _fail(error.format_message(), debug)
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:
        code = _fail(_system_error(error), debug)
        with suppress(OSError, ValueError):  # what could not be written is not tried again on the way out
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, RecursionError) as error:
        code = _fail(f"internal error, please report: {type(error).__name__}: {error} (--debug shows where)", debug)
    gc.freeze()  # what is left is not looked through for garbage on the way out
    sys.exit(code if isinstance(code, int) else 0)


def _system_error(error: OSError) -> str:
    """An error of the system in one line: a full disk, say."""
    what = "" if error.filename is None else f"{shown_name(str(os.fsdecode(error.filename)))}: "
    if not what and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF):
        what = "the report cannot be written: "
    return f"{what}{error.strerror or error}"


def _fail(message: str, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    click.echo(f"bankcheck: error: {message}", err=True)
    return 2
