"""The light module of the facade: the command that it adds, as strings."""

from whileai_kernel import hookimpl


@hookimpl
def wai_register_commands(register):  # type: ignore[no-untyped-def]
    """Register `wai demo`."""
    register("demo", "whileai.demo:Demo", summary="Run the whole loop offline and print each step.")
