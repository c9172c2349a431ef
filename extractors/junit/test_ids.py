"""Names of tests: what the tool itself calls a test, which its report has in parts."""

from __future__ import annotations

from reader import Case

from kos_retry.sdk import Request

MAX_NAME_PARTS = 32
# A class name that is the same for every test of its tool.
NO_CLASS = frozenset({"", "test", "(empty)"})


def test_id(request: Request, case: Case, text: str) -> str:
    """Return the name under which the tool itself prints a test.

    Of pytest that is the node id. Elsewhere it is class and name joined by what the failure's own text
    joins them with, else by ``.``; a name that is prose is joined by `` > ``. Where the class says nothing
    the suite stands in for it.
    """
    classname, name = case.classname.strip(), case.name.strip()
    if case.tool == "pytest":
        return _node_id(request, case, text)
    if classname.lower() in NO_CLASS:
        classname = "" if case.suite.lower() in NO_CLASS else case.suite.strip()
    if not classname or name == classname or name.startswith(classname + " "):
        return name or classname
    if not name:
        return classname
    if case.joint:
        return f"{classname}{case.joint}{name}"
    if "::" in name and case.suite == classname:
        # A path of modules in a program that has the suite to itself.
        return f"{classname} {name}"
    for joint in ("::", "#", "->", " > ", " › "):
        if f"{classname}{joint}{name}" in text:
            return f"{classname}{joint}{name}"
    return f"{classname} > {name}" if " " in name else f"{classname}.{name}"


def _node_id(request: Request, case: Case, text: str) -> str:
    """Return pytest's node id: the file from the report where it says so, else from the dotted class name."""
    if not case.classname:
        return case.file or _module_path(case.name.split(".", MAX_NAME_PARTS), text)[0]
    if case.file:
        path = request.relative(case.file)
        module = path.removesuffix(".py").replace("/", ".")
        classes = case.classname[len(module) + 1 :].split(".") if case.classname.startswith(module + ".") else []
    else:
        path, classes = _module_path(case.classname.split(".", MAX_NAME_PARTS), text)
    return "::".join([path, *classes, case.name])


def _module_path(parts: list[str], text: str) -> tuple[str, list[str]]:
    """Return the file of a dotted name and the classes in it.

    The failure's text names the file in most cases; else test files are known by their name, and classes
    by their capital.
    """
    paths = {"/".join(parts[:n]) + ".py": n for n in range(len(parts), 0, -1)}
    for path, n in paths.items():
        if f"{path}:" in text or f'{path}"' in text:
            return path, parts[n:]
    tests = [n for n, part in enumerate(parts, 1) if part.startswith("test_") or part.endswith("_test")]
    n = tests[0] if tests else len(parts)
    while not tests and n > 1 and parts[n - 1][:1].isupper():
        n -= 1
    return "/".join(parts[:n]) + ".py", parts[n:]
