"""Settings: read from the environment, checked, overridden."""

import pytest

from jitgraph.config import SETTINGS, Config, config


def test_defaults_without_environment() -> None:
    fresh = Config({})
    assert all(getattr(fresh, s.name) == s.default for s in SETTINGS)


def test_environment_is_parsed_by_type() -> None:
    fresh = Config({"JITGRAPH_CACHE": "0", "JITGRAPH_ENTRIES": "3", "JITGRAPH_DUMP": "fuse,llvm"})
    assert (fresh.cache, fresh.entries, fresh.dump) == (False, 3, "fuse,llvm")


def test_bad_environment_names_the_variable() -> None:
    with pytest.raises(ValueError, match="JITGRAPH_ENTRIES='many' is no int"):
        Config({"JITGRAPH_ENTRIES": "many"})


def test_unknown_setting_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="no setting 'cach'; there are blas_on_pool, cache, cache_dir"):
        config.update(cach=True)


def test_update_checks_the_type() -> None:
    with pytest.raises(TypeError, match="setting entries is int, got str"):
        config.update(entries="3")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num_threads", "-4", -4),
        ("entries", "0", 0),
        ("cache_bytes", "-1", -1),
        ("pool_bytes", "-2", -2),
        ("unroll_limit", "-1", -1),
        ("dispatch", "fast", "fast"),
        ("log", "miss,compiles", "miss,compiles"),
    ],
)
def test_values_that_a_setting_cannot_have(name: str, text: str, value: object) -> None:
    before = getattr(config, name)
    with pytest.raises(ValueError, match=f"JITGRAPH_{name.upper()}='{text}' is not allowed: "):
        Config({f"JITGRAPH_{name.upper()}": text})
    with pytest.raises(ValueError, match=f"setting {name} cannot be {value!r}: "):
        config.update(**{name: value})
    assert getattr(config, name) == before


def test_several_events_are_logged() -> None:
    assert Config({"JITGRAPH_LOG": "miss, compile"}).log == "miss, compile"


def test_override_restores_after_an_error() -> None:
    with pytest.raises(KeyError), config.override(entries=7):
        assert config.entries == 7
        raise KeyError
    assert config.entries == 128


def test_names_and_variables_are_unique_and_sorted() -> None:
    names = [s.name for s in SETTINGS]
    assert names[1:] == sorted(set(names[1:]), key=names.index)
    assert len({s.env for s in SETTINGS}) == len(SETTINGS)


def test_the_table_in_the_docs_is_complete() -> None:
    from pathlib import Path

    text = (Path(__file__).parent.parent / "docs" / "settings.md").read_text()
    for s in SETTINGS:
        assert f"| `{s.name}` | `{s.env}` | `{s.default!r}` | {s.doc} |" in text
