"""Starts the dashboard from wherever the package is installed, with the settings that `streamlit run` gives it."""

import os

from streamlit import config
from streamlit.config_option import ConfigOption

from attention_sieve.dashboard.configuration import stated_options
from attention_sieve.dashboard.packages import check_packages


def start(port: int | None = None) -> None:
    """Serve the dashboard until it is stopped, by default at the port of its settings.

    Raises: AnalysisError when its settings, the bundled checkpoint or the parser are missing or wrong.
    """
    check_packages()
    # As in the Makefile, before torch is loaded: threads that wait leave the processor to others.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # What stands in the environment, such as STREAMLIT_SERVER_PORT, goes before a file with Streamlit; what is given
    # here would go before both.
    options = {name: value for name, value in stated_options().items() if ConfigOption(name).env_var not in os.environ}
    if port is not None:
        options["server.port"] = port
    config.get_config_options(options_from_flags=options)  # the first time, so that `run` finds nothing changed
    from attention_sieve.dashboard.server import app

    app.run(config=options)
