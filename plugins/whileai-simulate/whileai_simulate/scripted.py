"""The kernel's scripted model, under the name that this plugin's examples use."""

from whileai_kernel.testing.models import ScriptedModel

__all__ = ["ScriptedModel"]
