"""A folder with Debian's packages of another processor, whose Python runs under QEMU.

    root = Root(cache, "arm64", "aarch64", "cortex-a72")
    root.fill(["python3.11"])
    root.python            # a script that runs the folder's interpreter, in which `sys.executable` is this script

Nothing is installed and nobody needs to be root: `apt-get` downloads, with the system's sources but lists of its own,
and `dpkg-deb` unpacks. QEMU, too, is taken from Debian unless it is installed.
"""

import os
import shlex
import shutil
import subprocess
import sys

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE = "import sys\nsys.executable = sys._base_executable = {python!r}\n"


class Root:
    def __init__(self, cache, architecture, processor, model):
        self.cache = cache
        self.architecture = architecture  # Debian's name
        self.processor = processor  # QEMU's
        self.model = model  # of the processor
        self.path = cache / "root"
        self.python = cache / "python"

    def fill(self, packages):
        """Unpack packages and all that they depend on, and make `python`; does nothing if that has been done."""
        wanted = " ".join(packages)
        done = self.cache / "packages.txt"
        if done.exists() and done.read_text(encoding="utf-8") == wanted:
            return
        done.unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)
        for package in self.downloaded(self.architecture, packages):
            subprocess.run(["dpkg-deb", "-x", package, self.path], check=True)
        if not self.path.joinpath("lib").exists():  # newer releases of Debian have only /usr/lib
            self.path.joinpath("lib").symlink_to("usr/lib")
        emulator, interpreter = self.emulator(), self.path / "usr" / "bin" / f"python{VERSION}"
        command = shlex.join(map(str, [emulator, "-cpu", self.model, "-L", self.path, interpreter]))
        self.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        self.python.chmod(0o755)
        # The kernel runs no file of another processor, so programs that start their interpreter again need the script.
        site = self.path / "usr" / "lib" / f"python{VERSION}" / "sitecustomize.py"
        site.unlink(missing_ok=True)
        site.write_text(SITE.format(python=str(self.python)), encoding="utf-8")
        done.write_text(wanted, encoding="utf-8")

    def emulator(self):
        """Return the path of QEMU, which is linked statically."""
        for name in (f"qemu-{self.processor}-static", f"qemu-{self.processor}"):
            if shutil.which(name):
                return shutil.which(name)
        own = subprocess.run(
            ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for package in self.downloaded(own, ["qemu-user-static"]):
            subprocess.run(["dpkg-deb", "-x", package, self.cache / "qemu"], check=True)
        return self.cache / "qemu" / "usr" / "bin" / f"qemu-{self.processor}-static"

    def downloaded(self, architecture, packages):
        """Return the files of packages and of all that they depend on."""
        place = self.cache / "apt" / architecture
        for folder in (place / "lists" / "partial", place / "archives" / "partial"):
            folder.mkdir(parents=True, exist_ok=True)
        place.joinpath("status").touch()  # nothing is installed, so everything is downloaded
        options = {
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Install-Recommends": "false",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
            "Dir::State::Lists": place / "lists",
            "Dir::State::Status": place / "status",
            "Dir::Cache": place,
        }
        command = ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        subprocess.run([*command, "update"], check=True, stdout=subprocess.DEVNULL)
        for old in place.joinpath("archives").glob("*.deb"):
            old.unlink()
        subprocess.run(
            [*command, "--yes", "--download-only", "install", *packages], check=True, stdout=subprocess.DEVNULL
        )
        return sorted(place.joinpath("archives").glob("*.deb"))

    def run(self, *arguments, cwd, environment=()):
        """Run the root's Python."""
        kept = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        }
        subprocess.run([*map(str, [self.python, *arguments])], cwd=cwd, env=kept | dict(environment), check=True)
