"""Fields of the sections, as pydantic validators whose errors say what is allowed, and the way from them to one clear line."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo, model_validator

from .document import Document, Steps
from .expressions import ExpressionError, evaluate

__all__ = ["Count", "Flag", "Name", "Names", "Number", "Section", "Share", "Words", "validated"]

LARGEST = 1 << 53
LARGEST_NUMBER = 1e30


class Section(BaseModel):
    """A mapping of the specification. Unknown keys are refused; one without a value is as if left out."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        return {key: value for key, value in content.items() if value is not None or key not in cls.model_fields}


def _number(value: Any, info: ValidationInfo) -> int | float:
    names: Mapping[str, Any] = (info.context or {}).get("names", {})
    if isinstance(value, str):
        try:
            value = evaluate(value, names)
        except ExpressionError as error:
            raise ValueError(str(error)) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if not 0 <= value <= LARGEST_NUMBER:
        raise ValueError(f"must be a number between 0 and {LARGEST_NUMBER:g}")
    return value


def _count(value: Any, info: ValidationInfo) -> int:
    number = _number(value, info)
    if number != int(number) or number > LARGEST:
        raise ValueError(f"must be a whole number between 0 and {LARGEST}")
    return int(number)


def _share(value: Any, info: ValidationInfo) -> float:
    try:
        number = _number(value, info)
    except ValueError as error:
        if "must be a number" not in str(error):
            raise
        number = -1.0
    if number < 0 or number > 1:
        raise ValueError("must be a number between 0 and 1")
    return float(number)


def _flag(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError("must be true or false")
    return words[str(value).lower()]


def _name(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError("must be a name")
    return str(value).strip()


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of names")
    return tuple(_name(each) for each in value)


def _words(value: Any) -> str | tuple[str, ...]:
    """Text, or a list of words, as factors and permutations are."""
    if isinstance(value, list):
        return tuple(_name(each) for each in value)
    if isinstance(value, dict):
        return tuple(f"{key}={each}" for key, each in value.items())
    return _name(value)


Number = Annotated[float, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(_count)]
Share = Annotated[float, BeforeValidator(_share)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Name = Annotated[str, BeforeValidator(_name)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Words = Annotated[str | tuple[str, ...], BeforeValidator(_words)]

Model = TypeVar("Model", bound=Section)


def validated(
    model: type[Model], content: Any, document: Document, steps: Steps, names: Mapping[str, Any] | None = None
) -> Model:
    """The section at a path, checked. Raises SpecError with the first complaint."""
    try:
        return model.model_validate(content, context={"names": names or {}})
    except ValidationError as error:
        found = error.errors(include_url=False)
    # A key that is written wrong tells more than the one that is missing for it.
    complaint = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    location = tuple(step for step in complaint["loc"] if not (isinstance(step, str) and step.startswith("function-")))
    path = (*steps, *location)
    if complaint["type"] == "extra_forbidden":
        known = _known(model, location[:-1])
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise document.error(path, f"no such key: must be one of {', '.join(known)}{hint}", complaint["input"])
    if complaint["type"] == "missing":
        raise document.error(path, "is missing")
    allowed = str(complaint.get("ctx", {}).get("error", complaint["msg"]))
    if complaint["type"] in ("model_type", "model_attributes_type", "dict_type"):
        known = _known(model, location)
        allowed = f"must be a mapping with {', '.join(known)}" if known else "must be a mapping"
    elif complaint["type"] in ("list_type", "tuple_type"):
        allowed = "must be a list"
    raise document.error(path, allowed[0].lower() + allowed[1:], complaint["input"])


def _known(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Keys of the section at a path inside a model."""
    for step in path:
        if isinstance(step, int):
            continue
        inner = model.model_fields[step].annotation if step in model.model_fields else None
        found = _model_in(inner)
        if found is None:
            return []
        model = found
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
