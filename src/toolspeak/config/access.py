"""Reads `[access]`: where made keys are stored, and which tokens of an identity provider are accepted.

[access.jwt]
issuer = "https://login.example.com/realms/main"
audience = "toolspeak"
jwks_url = "https://login.example.com/realms/main/protocol/openid-connect/certs"

[access.jwt.tenants."team-*"]
models = ["small"]
requests_per_minute = 60
"""

from dataclasses import replace
from typing import Final

from toolspeak.config.declared import read_given, read_section
from toolspeak.config.sections import TenantSection
from toolspeak.config.shape import Access, Jwt, TenantRule
from toolspeak.config.table import Table

_REQUIRED: Final = {
    "issuer": "the claim `iss` of your tokens",
    # Without it, a token that the provider made for any other service would be accepted here, and that service could
    # use the tokens of its users for this gateway.
    "audience": "the claim `aud` of tokens for this gateway",
}


def read_access(table: Table) -> Access:
    """Read the whole table."""
    jwt = _read_jwt(table.table("jwt"))
    return replace(read_section(table, Access), jwt=jwt)


def _read_jwt(table: Table) -> Jwt:
    """Read `[access.jwt]`; an empty table accepts no tokens. If it has problems, the result is never used."""
    said = {*table.left}
    rules = tuple(_read_rule(pattern, inner) for pattern, inner in table.tables("tenants").items())
    jwt = replace(read_section(table, Jwt), tenants=rules)
    if not said:
        return jwt
    for name, what in _REQUIRED.items():
        if name not in said:
            table.bad(name, f"is missing: {what}")
    if ("jwks_url" in said) == ("jwks_file" in said):
        table.bad("jwks_url", "one of jwks_url and jwks_file is needed, and only one")
    if "algorithms" in said and not jwt.algorithms:
        table.bad("algorithms", "is empty: name at least one")
    # Which of the two decides would not be clear, and a mistake there gives a tenant models that it may not use.
    if jwt.models_claim and any(rule.models for rule in rules):
        table.bad("models_claim", "is given together with models of tenants: remove one of the two")
    return jwt


def _read_rule(pattern: str, table: Table) -> TenantRule:
    return TenantRule(pattern, **read_given(table, TenantSection))
