"""Our own rules over the templates: what no linter sees, each with the reason it is there."""

from __future__ import annotations

from tests.synth.deployments import Template
from tests.synth.rules.access import (
    called_by_ours_only,
    no_clear_secret,
    no_confused_deputy,
    no_managed_policy,
    no_wildcard,
    nothing_public,
    roles_fit_iam,
)
from tests.synth.rules.delivering import (
    appends_only,
    connectivity_comes_second,
    iceberg_tables_alone,
    keeps_what_fails,
    reads_all_there_is,
)
from tests.synth.rules.kafka import (
    known_settings,
    lasting_kafka,
    named_by_content,
    safe_connect,
    safe_kafka,
    topics_as_locally,
)
from tests.synth.rules.naming import names_fit_the_service
from tests.synth.rules.querying import queries_are_bounded
from tests.synth.rules.reading import Rule
from tests.synth.rules.running import (
    answers_are_awaited_briefly,
    connections_name_their_zone,
    one_run_at_a_time,
    schedules_fail_loudly,
    what_runs_is_known,
)
from tests.synth.rules.serving import (
    containers_are_known,
    shards_are_ours,
    web_servers_are_private,
)
from tests.synth.rules.storage import (
    every_bucket_has_a_policy,
    kept_when_deleted,
    logs_end,
    safe_bucket,
    safe_database,
)
from tests.synth.rules.watching import (
    alarms_lead_somewhere,
    keys_are_for_this_account,
    topics_are_for_alarms,
)

RULES: tuple[Rule, ...] = (
    names_fit_the_service,
    connections_name_their_zone,
    no_clear_secret,
    no_managed_policy,
    no_wildcard,
    roles_fit_iam,
    no_confused_deputy,
    logs_end,
    nothing_public,
    kept_when_deleted,
    safe_database,
    safe_kafka,
    known_settings,
    lasting_kafka,
    topics_as_locally,
    safe_connect,
    named_by_content,
    safe_bucket,
    one_run_at_a_time,
    what_runs_is_known,
    schedules_fail_loudly,
    answers_are_awaited_briefly,
    called_by_ours_only,
    alarms_lead_somewhere,
    topics_are_for_alarms,
    keys_are_for_this_account,
    queries_are_bounded,
    reads_all_there_is,
    appends_only,
    keeps_what_fails,
    iceberg_tables_alone,
    web_servers_are_private,
    containers_are_known,
    shards_are_ours,
)
# These look at a whole stack.
WIDE_RULES = (every_bucket_has_a_policy, connectivity_comes_second)


def broken_rules(templates: dict[str, Template]) -> list[str]:
    """What is wrong, as `rule: stack/resource: what`."""
    without = [
        f"{rule.__name__}: {stack}/{what}"
        for stack, template in templates.items()
        for rule in WIDE_RULES
        for what in rule(template)
    ]
    return without + [
        f"{rule.__name__}: {stack}/{name}: {what}"
        for stack, template in templates.items()
        for name, resource in template["Resources"].items()
        for rule in RULES
        for what in rule(resource["Type"], resource.get("Properties", {}), resource)
    ]
