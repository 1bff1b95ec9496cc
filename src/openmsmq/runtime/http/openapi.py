"""The description of the door for programs, as OpenAPI 3.1; headers come from the properties."""

from __future__ import annotations

from typing import Any, Final

from openmsmq import __version__
from openmsmq.client.messages.property import Kind
from openmsmq.runtime.http.wishes import BODY_KINDS, headers_help
from openmsmq.runtime.limits import HTTP_BODY_MAX_BYTES

_TYPES: Final = {Kind.YES_NO: "boolean", Kind.NUMBER: "number", Kind.SMALL: "integer"}
_SPELT: Final = {"Msmq-Acknowledge": "string"}
"""Headers whose values have names."""

_PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_FAILURES: Final = {
    "400": "The request, a header, or the name of the queue means nothing.",
    "401": "No token, or one that is not good.",
    "403": "The caller may not, or the request comes from a page in a browser.",
    "404": "There is no such queue, or no such voucher.",
    "408": "The rest of the request came too late.",
    "411": "There is no Content-Length.",
    "413": f"The body is longer than {HTTP_BODY_MAX_BYTES} bytes.",
    "415": "The Content-Type, or its charset, is not known.",
    "422": "Another message was sent under the same Idempotency-Key.",
    "429": "Too many requests of this address are under way.",
    "503": "The disk or a quota is full, or the queue manager is stopping. Try again.",
}


def description(server: str) -> dict[str, Any]:
    """Return the description; `server` is the name of the queue manager."""
    voucher = {"application/json": {"schema": {"$ref": "#/components/schemas/Voucher"}}}
    told = {
        "Idempotent-Replayed": {
            "description": "`true` if it was sent before under this key.",
            "schema": {"type": "string"},
        },
        "Location": {
            "description": "The voucher, if there is a key.",
            "schema": {"type": "string"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Messages into the queues of {server}",
            "version": __version__,
            "description": "A POST is a message in a queue, once it is answered with 201.",
        },
        "security": [{"token": []}],
        "paths": {
            "/queues/{queue}/messages": {
                "post": {
                    "operationId": "send",
                    "summary": "Send a message",
                    "parameters": _parameters(),
                    "requestBody": {
                        "required": True,
                        "content": {kind: {"schema": {}} for kind in BODY_KINDS},
                    },
                    "responses": {
                        "201": {
                            "description": "The message is in the queue, and on the disk unless "
                            "it is an express one.",
                            "headers": told,
                            "content": voucher,
                        },
                        "202": {
                            "description": "The message goes to a multicast address, and is kept "
                            "nowhere.",
                            "headers": told,
                            "content": voucher,
                        },
                        **_failures(),
                    },
                }
            },
            "/vouchers/{key}": {
                "get": {
                    "operationId": "voucher",
                    "summary": "Ask what was sent under a key",
                    "parameters": [
                        {
                            "name": "key",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string"},
                        }
                    ],
                    "responses": {
                        "200": {"description": "This was sent.", "content": voucher},
                        **_failures("401", "403", "404", "503"),
                    },
                }
            },
        },
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `openmsmq token create` has made.",
                }
            },
            "schemas": {
                "Voucher": _object(
                    {
                        "message_id": r"The identifier: `{guid}\number`.",
                        "queue": "The queue.",
                        "sent_time": "When it was sent.",
                        "key": "The Idempotency-Key, if it had one.",
                        "key_until": "How long the key is remembered, unless room is needed.",
                        "note": "What a program might not expect of this message.",
                    },
                    ["message_id", "queue", "sent_time"],
                ),
                "Problem": _object(
                    {
                        "title": "The status in words.",
                        "status": "The status.",
                        "detail": "What is wrong, and what to do.",
                        "code": "The error of MSMQ, if it is one.",
                    },
                    ["title", "status", "detail"],
                ),
            },
        },
    }


def _parameters() -> list[dict[str, Any]]:
    queue = {
        "name": "queue",
        "in": "path",
        "required": True,
        "description": "The name of a queue, such as `private$/orders` or `orders`; or a format "
        "name with its special letters written with `%`.",
        "schema": {"type": "string"},
    }
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A name for this message that its sender has chosen: what is sent again "
        "under it is not sent twice.",
        "schema": {"type": "string"},
    }
    headers = [
        {
            "name": name,
            "in": "header",
            "description": meaning,
            "schema": {"type": _SPELT.get(name) or _TYPES.get(kind, "string")},
        }
        for name, (meaning, kind) in headers_help().items()
    ]
    return [queue, key, *headers]


def _failures(*statuses: str) -> dict[str, Any]:
    return {
        status: {"description": meaning, "content": _PROBLEM}
        for status, meaning in _FAILURES.items()
        if not statuses or status in statuses
    }


def _object(fields: dict[str, str], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": {
            name: {
                "type": "integer" if name == "status" else "string",
                "description": meaning,
            }
            for name, meaning in fields.items()
        },
    }
