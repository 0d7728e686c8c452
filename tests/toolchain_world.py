"""A small pretend world for the toolchain's tests: fake wheels, pip, make and g++.

Nothing is compiled or downloaded in it.  Tests enter it with the fixture ``world``; programs
that tests start enter it with :meth:`World.command`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import sys
import zipfile
from pathlib import Path
from typing import Any

from harness.engine.toolchain import assemble, wheels

PIP = """
import json, os, shutil, sys
from pathlib import Path
world = Path(__file__).parent
options = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:] if a.startswith("--") and "=" in a)
name = Path(options["requirement"]).read_text().split("==")[0]
with (world / "pip.calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
mode = os.environ.get("FAKE_PIP", "works")
if mode == "offline":
    print("WARNING: Retrying ... NewConnectionError('Temporary failure in name resolution')")
    print("ERROR: No matching distribution found for " + name)
    sys.exit(1)
if mode == "refuses":
    print("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.")
    print("        Expected sha256 " + "a" * 64)
    print("             Got        " + "b" * 64)
    sys.exit(1)
copy = Path(shutil.copy(world / "index" / (name + ".whl"), options["dest"]))
if mode == "changes":
    copy.write_bytes(copy.read_bytes() + b"changed")
"""

MAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo "GNU Make 4.3"; exit; fi
echo "$PWD $* CXX=$CXX MAKEFLAGS=$MAKEFLAGS" >> "$WORLD/make.calls"
case "$FAKE_MAKE" in
  slow) sleep 1.5 ;;
  endless) echo $$ > "$WORLD/make.pid"; sleep 60 & echo $! > "$WORLD/child.pid"; wait ;;
  outlives) touch "$WORLD/make.began"; sleep 1.5 ;;
  fails) echo "src/frontend.cpp:7:1: error: 'x' was not declared"
         echo "make: *** [build] Error 1"; exit 2 ;;
  starves) echo "g++: fatal error: Killed signal terminated program cc1plus"; exit 2 ;;
esac
mkdir -p build && echo "$FAKE_MAKE" > build/frontend.o
touch "$WORLD/make.ended"
"""

GXX = """#!/bin/sh
case "$1" in
  --version) echo "$(basename "$0") (Fake) ${FAKE_GXX_VERSION:-12.2.0}"; echo "Copyright" ;;
  -dumpmachine) echo x86_64-fake ;;
esac
"""

STANC = "#!/bin/sh\necho 'stanc3 v2.39.0 (Unix)'\n"

MEMBERS = {
    "httpstan": {
        "httpstan/include/stan/version.hpp": "// Stan\n",
        "httpstan/include/pybind11/pybind11.h": "// not needed\n",
        "httpstan/lib/libtbb.so.2": "library\n",
        "httpstan/stanc": STANC,
        "httpstan/stan_services.o": "not needed\n",
        "httpstan-4.17.0.dist-info/LICENSE": "ISC\n",
    },
    "prophet": {
        "prophet/stan_model/cmdstan-2.37.0/bin/stansummary": "#!/bin/sh\necho summary\n",
        "prophet/stan_model/cmdstan-2.37.0/bin/diagnose": "#!/bin/sh\necho diagnosis\n",
        "prophet/stan_model/cmdstan-2.37.0/bin/stanc": "not needed\n",
        "prophet.libs/libtbb-1.so.2": "library\n",
        "prophet-1.5.0.dist-info/licenses/LICENSE": "MIT\n",
    },
}


def write_wheel(path: Path, members: dict[str, str], *, mode: int = 0o100755) -> str:
    """Write a zip file with these members and return its SHA-256."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


class World:
    """The pretend world in one folder; making it again on the same folder gives the same one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "cache"
        self.home = root / "home"
        self.recipes = root / "recipes"
        self.bin = root / "bin"
        if not root.exists():
            self._create()
        pins = json.loads((root / "pins.json").read_text())
        self.wheels = tuple(
            dataclasses.replace(wheel, sha256=pins[wheel.name]) for wheel in _REAL_WHEELS
        )

    def _create(self) -> None:
        for folder in (self.home, self.recipes, self.bin, self.root / "index"):
            folder.mkdir(parents=True)
        (self.recipes / "makefile").write_text("CMDSTAN_VERSION := 2.39.0\nbuild:\n")
        (self.recipes / "frontend.cpp").write_text("int main() {}\n")
        (self.root / "pip.py").write_text(PIP)
        for name, text in {"make": MAKE, "g++": GXX}.items():
            self.program(name, text)
        pins = {
            name: write_wheel(self.root / "index" / f"{name}.whl", members)
            for name, members in MEMBERS.items()
        }
        (self.root / "pins.json").write_text(json.dumps(pins))

    def program(self, name: str, text: str) -> Path:
        """Put a program into the folder that is this world's whole PATH besides the shell's."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def environment(self) -> dict[str, str | None]:
        """Return the environment variables to set, or to unset where ``None``."""
        return {
            "HARNESS_CACHE": str(self.cache),
            "HOME": str(self.home),
            "WORLD": str(self.root),
            "PATH": f"{self.bin}:{os.defpath}",
            "CXX": str(self.bin / "g++"),
            "MAKE": str(self.bin / "make"),
            **dict.fromkeys(("CMDSTAN", "FAKE_PIP", "FAKE_MAKE", "FAKE_GXX_VERSION")),
        }

    def patches(self) -> list[tuple[Any, str, Any]]:
        """Return (object, attribute, value) for what has no environment variable."""
        return [
            (wheels, "WHEELS", self.wheels),
            (wheels, "_PIP", (sys.executable, str(self.root / "pip.py"))),
            (assemble, "_RECIPES", self.recipes),
            (platform, "system", lambda: "Linux"),
            (platform, "machine", lambda: "x86_64"),
            (platform, "libc_ver", lambda: ("glibc", "2.36")),
        ]

    def command(self, call: str = "assemble.ensure_assembled()") -> list[str]:
        """Return a command that enters this world, with our environment, and prints a call."""
        code = (
            f"import sys; sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\n"
            "from pathlib import Path; from toolchain_world import World, assemble\n"
            f"for patch in World(Path({str(self.root)!r})).patches(): setattr(*patch)\n"
            f"from harness.engine.toolchain import stanc; print({call})"
        )
        return [sys.executable, "-c", code]

    def calls(self, name: str) -> list[str]:
        """Return one line for each time that the fake pip or make was asked to work."""
        path = self.root / f"{name}.calls"
        return path.read_text().splitlines() if path.exists() else []


_REAL_WHEELS = wheels.WHEELS
