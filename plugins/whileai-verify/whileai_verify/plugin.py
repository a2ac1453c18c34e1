"""The light module of whileai-verify: what it adds, as strings."""

from whileai_kernel import hookimpl

_P = "whileai_verify."
_VERIFIERS = (
    ("exact_match", "text:ExactMatch", "Equal to the reference after stated normalisation.", None),
    ("includes", "text:Includes", "Contains any, all or none of the given texts.", None),
    ("regex", "text:Regex", "A pattern matches, with a deadline.", None),
    ("multiple_choice", "choice:MultipleChoice", "Exactly one option is chosen, and it is the right one.", None),
    ("numeric", "number:Numeric", "The stated number equals the reference, with tolerances.", None),
    ("math_equal", "matheq:MathEqual", "Mathematically equal, evaluated in a worker with a deadline.", "math"),
    ("json_valid", "structure:JSONValid", "The reply holds strict JSON.", None),
    ("json_schema", "structure:JSONSchema", "The reply's JSON satisfies a schema, formats on.", "schema"),
    ("json_field", "structure:JSONField", "A field of the reply's JSON has the expected value.", None),
    ("sql", "sql:SQL", "A query gives the same result set as the reference query.", None),
    ("called", "calls:Called", "A tool was called.", None),
    ("not_called", "calls:NotCalled", "No forbidden tool was called.", None),
    ("sequence", "calls:Sequence", "Tools were called in this order.", None),
    ("arguments", "calls:Arguments", "A tool call has the expected arguments.", None),
    ("final_state", "state:FinalState", "The world ended in the expected state.", None),
    ("format_tags", "rules:FormatTags", "Tags are opened and closed once, in order.", None),
    ("rule_checks", "rules:RuleChecks", "Declared checks on the text hold; unknown checks are errors.", None),
    ("code_exec", "code:CodeExec", "Code passes its tests in an isolated process.", None),
    ("all", "combine:All", "Every part passes.", None),
    ("any", "combine:Any", "At least one part passes.", None),
    ("weighted", "combine:Weighted", "Weighted mean of the parts that were scored.", None),
    ("gate", "combine:Gate", "The score counts only if the gate passes.", None),
    ("not", "combine:Not", "One minus another verifier.", None),
)


@hookimpl
def wai_addhooks(pluginmanager):  # type: ignore[no-untyped-def]
    """Add the kind `sandboxes`."""
    import whileai_verify.hookspecs

    pluginmanager.add_hookspecs(whileai_verify.hookspecs)


@hookimpl
def wai_register_sandboxes(register):  # type: ignore[no-untyped-def]
    """Register the sandbox of this machine."""
    register(
        "local", _P + "sandbox:LocalSandbox", summary="Namespaces, seccomp, Landlock and limits, as far as they exist."
    )


@hookimpl
def wai_register_verifiers(register):  # type: ignore[no-untyped-def]
    """Register every verifier by its snake_case id."""
    for name, target, summary, needs in _VERIFIERS:
        register(name, _P + target, summary=summary, needs=needs)


@hookimpl
def wai_register_commands(register):  # type: ignore[no-untyped-def]
    """Register `wai verify`."""
    register("verify", _P + "cli:VerifyCommand", summary="Grade the rows of a file with a verifier.")


@hookimpl
def wai_conformance_checks(kind):  # type: ignore[no-untyped-def]
    """Return the checks of the kind `sandboxes`."""
    if kind != "sandboxes":
        return None
    from whileai_verify.checks import SANDBOX_CHECKS

    return SANDBOX_CHECKS
