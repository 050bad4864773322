"""Programs that are no Python packages: Chromium, which opens the pages, and nginx, the proxy of an example.

`python -m benchmarks.shared.programs` installs those that are missing, as `make test` does. A second run finds them.
With the argument `packages` it only asks apt-get, and needs no package of Python: pip can work at the same time.
"""

import os
import platform
import shutil
import subprocess
import sys
from typing import Final

DEBIAN_CHROMIUM: Final = ("chromium", "chromium-headless-shell")
"""Packages. Ubuntu has Chromium as a snap only, other distributions and systems under other names."""
NO_CHROMIUM: Final = (
    "Chromium is missing or does not start, and could not be installed here; the lines above say why. Install it, then "
    "run `make test` again: on Debian with `apt-get install chromium chromium-headless-shell` as root, elsewhere with "
    "`.venv/bin/playwright install --with-deps chromium`, which needs a network. `make units` tests all but the pages."
)
NO_NGINX: Final = (
    "nginx is missing, which these tests put in front of the dashboard as dashboard/web/nginx.conf shows. Install it, "
    "on Debian and Ubuntu with `apt-get install nginx-light` as root, and run the tests again."
)


def chromium() -> str | None:
    """Path of an installed Chromium; None if Playwright is to start its own.

    The one without windows is preferred: the whole browser takes twice the processor time for the same pages. A snap
    is left out: it has a /tmp of its own, where Playwright does not find what was downloaded.
    """
    paths = (shutil.which(name) for name in ("chromium-headless-shell", "chromium"))
    return next((path for path in paths if path and not path.startswith("/snap/")), None)


def nginx() -> str | None:
    """Path of nginx, also where only root has its folder in PATH; None if it is not installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def is_debian() -> bool:
    """Whether this is Debian itself, and none of the systems made from it."""
    try:
        return platform.freedesktop_os_release()["ID"] == "debian"
    except OSError:  # macOS has no such file
        return False


def install_packages() -> list[str] | None:
    """Install what is missing with apt-get, where that is allowed; returns its command, None where it is not."""
    apt_get = _apt_get()
    missing = [] if nginx() else ["nginx-light"]
    missing += DEBIAN_CHROMIUM if is_debian() and not chromium() else ()
    if apt_get and missing:
        subprocess.run([*apt_get, "update"], check=False)
        subprocess.run([*apt_get, "install", "--yes", "--no-install-recommends", *missing], check=False)
    return apt_get


def install() -> None:
    """Install what is missing, with apt-get where that is allowed, or Playwright's own Chromium.

    Raises: SystemExit, with what to do, without a Chromium that starts. A missing nginx is left to the test of it.
    """
    apt_get = install_packages()
    if chromium() or _playwrights_own_starts():
        return
    libraries = ["--with-deps"] if apt_get else []
    command = [sys.executable, "-m", "playwright", "install", *libraries, "--only-shell", "chromium"]
    subprocess.run(command, check=False)
    if not _playwrights_own_starts():
        sys.exit(NO_CHROMIUM)


def _apt_get() -> list[str] | None:
    """The command, as root or by a sudo that asks for no password; None if neither is to be had."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    sudo = ["sudo", "--non-interactive"]
    allowed = shutil.which("sudo") and not subprocess.run([*sudo, "true"], capture_output=True).returncode
    return [*sudo, "apt-get"] if allowed else None


def _playwrights_own_starts() -> bool:
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            playwright.chromium.launch().close()
        except Error:
            return False
    return True


if __name__ == "__main__":
    if sys.argv[1:] == ["packages"]:
        install_packages()
    else:
        install()
