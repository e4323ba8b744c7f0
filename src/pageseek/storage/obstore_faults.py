"""What an error of obstore means."""

from __future__ import annotations

import re

from pageseek.storage.redact import cleaned
from pageseek.storage.retry import NO_RANGES, Fault, code_in, of_status, status_in

ADVICE = ', or for a public bucket storage_options={"skip_signature": True}'

# a provider of credentials that is missing or refuses, where none were given
_credentials = re.compile(
    r"performing \w+ https?://(169\.254\.|metadata\.google\.internal|sts\.|login\.microsoftonline)"
    r"|^Generic \w+ error: (no|missing)\b.*credential",
    re.IGNORECASE,
)
_asked_range = re.compile(r"Requested (\d+)\.\.(\d+), got (\d+)\.\.(\d+)")


def fault_of(error: Exception, secrets: set[str]) -> Fault:
    """What an error of obstore means. Its text has URLs, and words of the server: little of it is shown."""
    from obstore import exceptions as o

    text = str(error)
    status = status_in(text)
    if isinstance(error, FileNotFoundError):
        return Fault("missing", f"the store answered 404{code_in(text)}")
    if isinstance(error, (o.PermissionDeniedError, o.UnauthenticatedError)):
        # without a status no request was sent: a provider of credentials has failed
        said = "not let in" if status is None else f"the store answered {status}{code_in(text)}"
        return Fault("denied", said, advice=ADVICE)
    if isinstance(error, o.PreconditionError):
        return Fault("changed", "the store has another version")
    if _credentials.search(text) and status != 503:
        return Fault("denied", "no credentials were found", advice=ADVICE)
    if isinstance(error, (o.NotSupportedError, NotImplementedError)) or "NotPartial" in text:
        said = "the server does not answer with the range that was asked for"
        return Fault("odd", said, advice=NO_RANGES)
    if "with invalid path" in text:
        why = cleaned(text, secrets)
        return Fault("final", why, advice="; rename that object, or give the files as a list")
    if "Content-Length Header missing" in text or "CONTENT_RANGE header" in text:
        said = "the server does not tell how long its answers or the file are"
        return Fault("odd", said, advice=NO_RANGES)
    if found := _asked_range.search(text):
        _, _, start, stop = map(int, found.groups())
        return Fault("odd", f"{stop - start} bytes from {start} on came", advice=NO_RANGES)
    if status is not None:
        return of_status(status, f"the store answered {status}{code_in(text)}", advice=ADVICE)
    if isinstance(error, o.GenericError):
        if "TimedOut" in text or "kind: Timeout" in text:
            return Fault("again", "the store fell silent")
        if "dns error" in text:
            return Fault("again", "no connection, as no address is known of the host")
        if "Connection refused" in text:
            return Fault("again", "no connection, as nothing answers at the address and port")
        if "ConnectError" in text or "kind: Connect" in text:
            return Fault("again", "no connection")
        if "kind: Builder" in text:
            return Fault(
                "final",
                "obstore does not take the URL; over http:// it wants allow_http in client_options",
            )
        if "HTTP error" in text:
            return Fault("again", "the connection broke")
    kind = "odd" if isinstance(error, o.GenericError) else "final"
    return Fault(kind, cleaned(text, secrets))  # type: ignore[arg-type]
