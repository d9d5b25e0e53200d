"""How a user sets the provider up with Hermes' own commands, and what these show of it."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from .config import SCHEMA, read_config, write_config
from .health import read_failure
from .names import PROVIDER, memory_file
from .reporting import describe_failure

NEEDED = ("apsw", "numpy", "recall_core")


class Setup:
    """The part of the provider that works before any agent runs."""

    @property
    def name(self) -> str:
        """What the provider is called in Hermes' config."""
        return PROVIDER

    def is_available(self) -> bool:
        """Tell whether all that is needed is installed and the home can be written."""
        return not self.unavailable_reason()

    def unavailable_reason(self) -> str:
        """Return why the provider can't be used, "" if it can."""
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            return f"{', '.join(missing)} can't be imported; install dualrecall-hermes into Hermes' own environment"
        home = find_home()
        if home.exists() and not os.access(home, os.W_OK):
            return f"{home} can't be written"
        return ""

    def get_config_schema(self) -> list[dict[str, Any]]:
        """Return what the wizard may ask. All has a default."""
        return [dict(field) for field in SCHEMA]

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Store what was answered, in `recall.json` of the home."""
        known = {field["key"] for field in SCHEMA}
        write_config(Path(hermes_home), {key: value for key, value in values.items() if key in known})

    def post_setup(self, hermes_home: str, config: dict[str, Any]) -> None:
        """Make this the provider of a home. There is nothing that has to be asked."""
        from hermes_cli.config import save_config

        if not isinstance(config.get("memory"), dict):
            config["memory"] = {}
        config["memory"]["provider"] = PROVIDER
        save_config(config)
        read_config(Path(hermes_home))
        print(f"\n  Memory provider: {PROVIDER}, in {memory_file(Path(hermes_home))}")  # noqa: T201
        print("  Nothing else to set up. Start a new session to use it.\n")  # noqa: T201

    def get_status_config(self, provider_config: Any) -> dict[str, Any]:
        """Return what `hermes memory status` shows: the file and what failed last. `hermes recall status` says more."""
        home = find_home()
        file = memory_file(home)
        shown: dict[str, Any] = {"file": str(file), "exists": file.exists()}
        try:
            config = read_config(home)
            shown |= {"captures": config.capture, "recalls": config.recall}
        except ValueError as error:
            shown["config error"] = str(error)
        shown["last failure"] = describe_failure(read_failure(home)) or "none"
        return shown

    def backup_paths(self) -> list[str]:
        """Return what Hermes' backup has to take from elsewhere: nothing, all is in the home."""
        return []


def find_home() -> Path:
    """Return the Hermes home of this process."""
    from hermes_constants import get_hermes_home

    return Path(get_hermes_home())
