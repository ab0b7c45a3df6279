"""Ways to break who may use the lake's servers, and what a deployed job may write."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SIGNATURE = ("tests/unit/local/test_signature.py",)
_CREDENTIALS = ("tests/unit/local/test_credentials.py",)
_CHECK = "cdclake/local/aws/signature.py"
_KAFKA = "cdclake/local/components/kafka.py"

ACCESS = (
    Mutation(
        "AWS's requests are not checked", _SIGNATURE,
        ((_CHECK, "                self._check(environ, body)\n", "                pass\n"),),
    ),
    Mutation(
        "any key id is taken", _SIGNATURE,
        ((_CHECK, "if not hmac.compare_digest(found.key_id.encode(), self._key_id.encode()):",
          "if False:"),),
    ),
    Mutation(
        "the key id is enough", _SIGNATURE,
        ((_CHECK, "if not hmac.compare_digest(expected.encode(), found.value.encode()):",
          "if False:"),),
    ),
    Mutation(
        "a presigned URL never expires", _SIGNATURE,
        ((_CHECK, "if found.is_presigned and _seconds(found.time)", "if False and _seconds('')"),),
    ),
    Mutation(
        "a signed request may have any body", _SIGNATURE,
        ((_CHECK, "if _SHA256.fullmatch(found.payload) and", "if False and"),),
    ),
    Mutation(
        "an earlier version's broker keeps its settings", _CREDENTIALS,
        (("cdclake/local/lake/stack.py",
          "if is_changed or spec.name not in", "if spec.name not in"),),
    ),
    Mutation(
        "Kafka's clients need no login", _CREDENTIALS,
        ((_KAFKA, "CLIENTS:SASL_PLAINTEXT", "CLIENTS:PLAINTEXT"),),
    ),
    Mutation(
        "Kafka's controller needs no login", _CREDENTIALS,
        ((_KAFKA, "CONTROLLER:SASL_PLAINTEXT", "CONTROLLER:PLAINTEXT"),),
    ),
    Mutation(
        "Connect needs no login", _CREDENTIALS,
        (("cdclake/local/components/connect.py",
          '        "rest.extension.classes": AUTHENTICATION,\n', ""),),
    ),
    Mutation(
        "an earlier home gets no credentials", _CREDENTIALS,
        (("cdclake/local/process/home.py", '"aws_secret_access_key", ', ""),),
    ),
    Mutation(
        "clients keep the keys of the first lake", ("tests/unit/local/test_lakes_in_turn.py",),
        (("cdclake/local/lake/lake.py", "        boto3.setup_default_session()\n",
          "        pass\n"),),
    ),
    Mutation(
        "the folder of credentials is open", _CREDENTIALS,
        (("cdclake/local/lake/client_files.py", "home.clients.chmod(0o700)",
          "home.clients.chmod(0o755)"),),
    ),
    Mutation(
        "every job writes every control object", ("tests/synth/test_permissions.py",),
        (("cdclake/control_access.py", "writes=(_LEASES, _REPORTS), deletes=(_LEASES,)",
          'writes=("*",), deletes=("*",)'),),
    ),
    Mutation(
        "the key admits every log group", ("tests/synth/test_narrow_grants.py",),
        (("stacks/constructs/encryption.py", '        f"{prefix}-*",\n', '        "*",\n'),),
    ),
    Mutation(
        "a stream of one table appends to every changelog", ("tests/synth/test_narrow_grants.py",),
        (("stacks/delivery_stack.py", "tables if len(tables) == 1 else [_CHANGELOGS]",
          "[_CHANGELOGS]"),),
    ),
    Mutation(
        "optimizers of put tables may maintain every table", ("tests/synth/test_narrow_grants.py",),
        (("stacks/put_stack.py", "            tables=self._parts.writable,\n", ""),),
    ),
    Mutation(
        "the connector alters every connector's group", ("tests/synth/test_narrow_grants.py",),
        (("stacks/constructs/connect_grants.py", 'f"connect-{connector}*"', '"connect-*"'),),
    ),
)  # fmt: skip
