"""A revision of a git repository: what of it is otherwise in the working tree, and its files as they stood, read out of git.

Nothing is checked out, and git is asked to start nothing that a stranger's configuration may name (`fsmonitor`, `textconv`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from syncscope.errors import UserError
from syncscope.project.folders import located

REGULAR = (b"100644", b"100755")
REPOSITORY = b"160000"  # another repository, of which only a commit is known
QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
LOCAL = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""What git tells its hooks of the repository in which it runs: we ask by folder."""

WHOLE = "fetch its history: `git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout, `GIT_DEPTH: 0` on GitLab"


@dataclass(frozen=True)
class Revision:
    """The commit in which HEAD and what was `said` part, of the repository whose files are below `top`."""

    said: str
    top: str  # through no link
    commit: str

    @property
    def name(self) -> str:
        """What it is called in a sentence: `main (1a2b3c4d5)`, a hash by its beginning."""
        short = self.commit[:9]
        return short if self.commit.startswith(self.said) else f"{self.said} ({short})"

    @cached_property
    def listed(self) -> dict[str, str]:
        """The regular files of the commit, relative to `top` with slashes: the hash of each."""
        found: dict[str, str] = {}
        for line in _lines(self.top, "ls-tree", "-r", "-z", "--full-tree", self.commit):
            head, _, name = line.partition(b"\t")
            mode, _, of = head.split(b" ")
            if mode in REGULAR:
                found[os.fsdecode(name)] = of.decode()
        return found

    @cached_property
    def changed(self) -> frozenset[str]:
        """Files of the commit or of the index that are otherwise now, or gone."""
        asked = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-relative", "-z")
        return frozenset(map(os.fsdecode, _lines(self.top, *asked, self.commit, "--")))

    @cached_property
    def _tracked(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """What git tracks now, and the folders of it that are repositories of their own."""
        files, others = [], []
        for line in _lines(self.top, "ls-files", "-s", "-z"):
            head, _, name = line.partition(b"\t")
            if head.startswith(REPOSITORY):
                others.append(os.fsdecode(name))
            else:
                files.append(os.fsdecode(name))
        return frozenset(files), tuple(others)

    def holds(self, path: str) -> bool:
        """Whether a file or folder is below `top`."""
        return os.path.join(located(path), "").startswith(os.path.join(self.top, ""))

    def relative(self, path: str) -> str:
        """A file as git names it."""
        return os.path.relpath(located(path), self.top).replace(os.sep, "/")

    def is_changed(self, path: str) -> bool:
        """Whether a file is otherwise than in the commit: changed, or there anew, tracked or not."""
        name = self.relative(path)
        files, others = self._tracked
        return name in self.changed or not (name in files or self._apart(name, others))

    def apart(self, paths: Iterable[str]) -> list[str]:
        """The repositories of their own in which some of these files are: of these the commit holds no file."""
        return sorted({found for path in paths if (found := self._apart(self.relative(path), self._tracked[1]))})

    @staticmethod
    def _apart(name: str, others: Iterable[str]) -> str:
        return next((other for other in others if name.startswith(f"{other}/")), "")

    def ignored(self) -> Iterator[str]:
        """What .gitignore leaves out and no commit holds, absolute: files, and folders of which all is left out."""
        asked = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        for line in _lines(self.top, *asked):
            yield os.path.join(self.top, os.fsdecode(line))

    def texts(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Files of the commit, as they stood there.

        Raises:
            UserError: git does not have them.
        """
        wanted = [name for name in names if name in self.listed]
        if not wanted:
            return
        asked = "".join(f"{self.listed[name]}\n" for name in wanted).encode()
        raw = _git(self.top, "cat-file", "--batch", said=asked)
        at = 0
        for name in wanted:
            head, _, _ = raw[at : at + 200].partition(b"\n")
            if not head.split()[1:2] == [b"blob"]:
                raise UserError(f"git does not have {name} of {self.name}", WHOLE)
            begin = at + len(head) + 1
            at = begin + int(head.split()[2]) + 1
            yield name, raw[begin : at - 1]


def since(said: str, paths: Iterable[str]) -> Revision:
    """The commit in which HEAD and a revision part, in the repository that holds these files and folders.

    Raises:
        UserError: they are in none, git knows no such revision, or too little of the history is there.
    """
    first = next((path if os.path.isdir(path) else os.path.dirname(path) for path in paths), "") or os.curdir
    try:
        top = os.path.realpath(os.fsdecode(_git(first, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    except _GitError as error:
        if "not a git repository" in str(error) or not str(error):
            hint = "--since asks git; without one, --write-baseline keeps what is known in a file"
            raise UserError(f"--since {said}: {first} is in no git repository", hint) from None
        raise UserError(f"--since {said}: git says: {error}", error.hint) from None
    given = f"{said}^{{commit}}"
    try:
        _git(top, "rev-parse", "--quiet", "--verify", "--end-of-options", given)
    except _GitError:
        raise UserError(f"--since {said}: git knows no such revision here", _unknown(top, said)) from None
    try:
        commit = _git(top, "merge-base", said, "HEAD").decode().strip()
    except _GitError:
        hint = WHOLE if _is_shallow(top) else "name a commit that is in this branch's history"
        raise UserError(f"--since {said}: no commit is known from which both it and HEAD come", hint) from None
    return Revision(said, top, commit)


class _GitError(Exception):
    """Git ended with an error; its first line, and what it says to do."""

    hint = "git itself must work here: try `git status`"


def _unknown(top: str, said: str) -> str:
    """What to do where git knows no such revision."""
    if _is_shallow(top):
        return f"only the last commits are here; {WHOLE}"
    try:
        remotes = _git(top, "for-each-ref", "--format=%(refname:short)", f"refs/remotes/*/{said}").decode().split()
    except _GitError:
        remotes = []
    return f"did you mean {remotes[0]!r}?" if remotes else "name a branch, a tag or a commit; `git fetch` brings others"


def _is_shallow(top: str) -> bool:
    return _git(top, "rev-parse", "--is-shallow-repository").strip() == b"true"


def _lines(top: str, *arguments: str) -> list[bytes]:
    try:
        return [line for line in _git(top, *arguments).split(b"\0") if line]
    except _GitError as error:
        raise UserError(f"git {arguments[0]} failed: {error}", error.hint) from None


def _git(folder: str, *arguments: str, said: bytes = b"") -> bytes:
    """What git says of the repository around a folder."""
    own = {name: value for name, value in os.environ.items() if name not in LOCAL}
    own |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # nothing is written there, and its words are known
    try:
        done = subprocess.run(["git", *QUIET, *arguments], cwd=folder, env=own, input=said, capture_output=True)
    except FileNotFoundError:
        raise UserError("--since: there is no git here", "install it, or use --baseline") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        error = _GitError(lines[0].removeprefix("fatal: ") if lines else "")
        error.hint = next((line.strip() for line in lines if "safe.directory" in line), error.hint)
        raise error
    return done.stdout
