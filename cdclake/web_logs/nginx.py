"""Configuration of nginx for any image: where it logs, and where it may write.

The image brings its servers in /etc/nginx/conf.d. They use the log that is set here unless they set
another one.
"""

from __future__ import annotations

SCRATCH = "/tmp"
_FILE = f"{SCRATCH}/nginx.conf"
_TEMPORARY = ("client_body", "fastcgi", "proxy", "scgi", "uwsgi")
TEXT = "NGINX_CONF"  # environment variable that holds the configuration


def configuration() -> str:
    """Return nginx.conf; it logs in the format `combined`, which Fluent Bit's parser reads."""
    temporary = "\n".join(f"    {kind}_temp_path {SCRATCH}/{kind};" for kind in _TEMPORARY)
    return f"""\
worker_processes auto;
pid {SCRATCH}/nginx.pid;
error_log /dev/stderr warn;
events {{}}
http {{
    include /etc/nginx/mime.types;
    access_log /dev/stdout combined;
{temporary}
    include /etc/nginx/conf.d/*.conf;
}}
"""


def command() -> list[str]:
    """Return the command that runs nginx with this configuration in the foreground."""
    write = f'printf "%s" "${TEXT}" > {_FILE}'
    return ["sh", "-c", f"{write} && exec nginx -e /dev/stderr -c {_FILE} -g 'daemon off;'"]
