"""What a function sees of the HTTP request, and what it may say of the HTTP response, beside its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from alipes.errors import ConfigError, TooLarge

__all__ = ["Request", "Response"]

_MAX_FIELDS: Final = 1000
"""Most fields of a query, as of a form: each costs the reader far more than its bytes."""


class Request:
    """The HTTP request behind a call: an argument annotated with this class gets it.

    Examples:
        >>> import alipes
        >>> @alipes.model
        ... def greet(name: str, request: alipes.Request) -> str:
        ...     return f"{request.query.get('greeting', 'Hello')}, {name}"
        >>> greet("Ada", alipes.Request(query="greeting=Good+day"))
        'Good day, Ada'
    """

    def __init__(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        query: str = "",
        method: str = "POST",
        content_type: str = "",
        body: bytes = b"",
    ) -> None:
        """Takes the parts of a request; those of a request that came over V2 are empty.

        Args:
            headers: Values by name, in lower case.
            query: The query string, as it is in the URL.
            method: The method.
            content_type: The media type of the body, with its parameters.
            body: The body.
        """
        self.headers: dict[str, str] = {name.lower(): value for name, value in (headers or {}).items()}
        self.query_string = query
        self.method = method
        self.content_type = content_type
        self.body = body

    @cached_property
    def query(self) -> dict[str, str]:
        """The query by name; of a name that stands several times, the last value.

        Raises:
            TooLarge: If it has more than 1,000 fields.
        """
        from urllib.parse import parse_qsl

        try:
            return dict(parse_qsl(self.query_string, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
        except ValueError as error:
            raise TooLarge(f"the query has more than {_MAX_FIELDS} fields") from error

    @cached_property
    def cookies(self) -> dict[str, str]:
        """The cookies by name; what is no cookie is passed over."""
        pairs = (part.partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip().strip('"') for name, equals, value in pairs if equals}


@dataclass(frozen=True, slots=True)
class Response:
    """A value with a status, headers and cookies: what a function returns where the value alone does not say it all.

    Attributes:
        value: What is answered, as if the function had returned it.
        status: HTTP status, from 200 to 599.
        headers: Further headers; a list stands for a header that is sent several times.
        cookies: Cookies to set, by name. Each holds for the whole site, and scripts of a page do not see it; a header
            `Set-Cookie` says it otherwise.
        content_type: Media type of the body. With one, a text is sent as it is, rather than as JSON.

    Examples:
        >>> import alipes
        >>> alipes.Response({"id": 7}, status=201, headers={"Location": "/items/7"}).status
        201
    """

    value: Any = None
    status: int = 200
    headers: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""

    def __post_init__(self) -> None:
        """Checks the status, headers and cookies.

        Raises:
            ConfigError: If the status is none, or a header or cookie could not be sent.
        """
        if type(self.status) is not int or not 200 <= self.status <= 599:
            raise ConfigError(f"Response(status={self.status!r}) must be an integer from 200 to 599")
        if named := next((name for name in self.headers if name.lower() == "content-type"), None):
            raise ConfigError(
                f"Response(headers={{{named!r}: ...}}): name the media type as content_type={self.headers[named]!r}"
            )
        for name, value in (*self.headers.items(), *self.cookies.items(), ("Content-Type", self.content_type)):
            parts = list(value) if isinstance(value, list | tuple) else [value]
            if not name or any(not isinstance(part, str) or not (name + part).isprintable() for part in parts):
                raise ConfigError(f"Response: header or cookie {name!r} must be printable text, got {value!r}")
        for name, value in self.cookies.items():
            if not (name + value).isascii() or any(letter in name + value for letter in ' ;,="\\'):
                raise ConfigError(f'Response: cookie {name!r} must be free of blanks and ; , = " \\, got {value!r}')

    def sent_headers(self) -> dict[str, str | list[str]]:
        """The headers with the cookies among them."""
        found: dict[str, str | list[str]] = {
            name: value if isinstance(value, str) else list(value) for name, value in self.headers.items()
        }
        if self.cookies:
            lines = [f"{name}={value}; Path=/; HttpOnly; SameSite=Lax" for name, value in self.cookies.items()]
            found["Set-Cookie"] = lines
        return found
