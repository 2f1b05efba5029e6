"""Templates of dialect v0.4: what is filled in, merged and refused."""

from pathlib import Path

import pytest

from sw.analytic.errors import SpecError
from sw.analytic.spec.document import load_document
from sw.analytic.spec.load import load_spec

TEMPLATE = """
{{add_to_path('parts')}}
{% set density = density | default(0.2) %}
_defaults:
  storage: &storage
    class: SRAM
    attributes: {width: 16, datawidth: 16, depth: 16}
architecture: {{include('machine.yaml', 'architecture')}}
problem:
  version: 0.4
  einsum: "Z[m,n] = A[m,k] * B[k,n]"
  instance: {m: 4, n: 4, k: 4, densities: {A: {{density}}}}
{% if path_exists('mapping.yaml') %}
{{include_text('mapping.yaml')}}
{% else %}
mapping: []
{% endif %}
"""
PARTS = {
    "machine.yaml": """
_storage: &storage
  class: SRAM
  attributes: {width: 16, datawidth: 16, depth: 16, read_bandwidth: 4}
architecture:
  version: 0.4
  nodes:
    - !Component {name: DRAM, class: DRAM, attributes: {width: 16, datawidth: 16}}
    - !Component
      <<<: *storage
      name: Buffer
      attributes: {depth: 2 * 48}
    - !Component {name: MAC, class: mac}
""",
    "mapping.yaml": """
mapping:
  - {target: Buffer, type: temporal, factors: [m=4, n=4, k=4], permutation: [k, n, m]}
""",
}


def templated(tmp_path: Path, text: str = TEMPLATE, **parts: str) -> Path:
    (tmp_path / "parts").mkdir()
    for name, part in {**PARTS, **{key.replace("_yaml", ".yaml"): value for key, value in parts.items()}}.items():
        (tmp_path / "parts" / name).write_text(part)
    path = tmp_path / "top.yaml.jinja2"
    path.write_text(text)
    return path


def test_templates_are_filled_and_merged(tmp_path):
    spec = load_spec([templated(tmp_path)])
    buffer = spec.architecture.levels[0]
    assert (buffer.name, buffer.words, buffer.read_bandwidth, buffer.word_bits) == ("Buffer", 96, 4, 16)
    assert spec.workload.density(spec.workload.problem.tensors[0]).mean((4, 4)) == pytest.approx(3.2)
    assert [loop.bound for loop in spec.mapping.loops[0]] == [4, 4, 4]


def test_merges_at_all_depths(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(
        "_a: &a {x: {p: 1, q: 2}, list: [1, 2], whole: [3], only: 4}\n"
        "_b: &b {x: {q: 5, r: 6}, only: 7, last: 8}\n"
        "variables:\n  <<<: [*a, *b]\n  x: {p: 9}\n  list: [0]\n  whole: !nomerge [1]\n"
    )
    document = load_document([path])
    assert document.content["variables"] == {
        "x": {"p": 9, "q": 2, "r": 6}, "list": [0, 1, 2], "whole": [1], "only": 4, "last": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("{{density}}", "'density' is undefined: must be set by {% set %} before, or have a default"),
        ("{% for i in range(9) %}x{% endfor %}", "For: must be a value, a condition or one of add_to_path"),
        ("{{ ''.__class__.__mro__ }}", "Getattr: must be a value"),
        ("{{ 'x' * 999999999 }}", "Mul: must be a value"),
        (
            "{{ open('/etc/passwd') }}",
            "must call one of add_to_path, cwd, find_path, include, include_text, path_exists",
        ),
        ("{{ 'x' | map }}", "map: must be one of default"),
        ("{{ include_text('none.yaml') }}", "none.yaml: no such file in "),
        ("{{ include('parts/machine.yaml', 'architecture.node') }}", "node: must be of version, nodes"),
        ("{{ include_text('top.yaml.jinja2') }}", "files include each other more than 16 times"),
        ("{{ 3", "line 1: "),
        ("{{ include_text() }}", "missing 1 required positional argument"),
    ],
)
def test_templates_that_cannot_be_filled(tmp_path, text, allowed):
    with pytest.raises(SpecError) as caught:
        load_spec([templated(tmp_path, f"x: {text}\n")])
    assert "template: " in str(caught.value) and allowed in str(caught.value)
