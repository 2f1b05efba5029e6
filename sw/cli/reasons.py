"""Why something could not be run, in one line."""

__all__ = ["reason"]


def reason(error: BaseException) -> str:
    """An error as one line; with its kind where it is no complaint of ours."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    text = " ".join(str(error).split())
    return text if hasattr(error, "exit_code") or hasattr(error, "allowed") else f"{type(error).__name__}: {text}"
