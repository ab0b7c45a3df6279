# cdclake with its local lake, from the wheel that `make wheel` builds. Never built or run: the
# machine where this project is developed has no container engine (docs/how-to/containers.md).
FROM docker.io/library/python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

COPY dist/*.whl /tmp/wheel/
RUN python -m pip install --no-cache-dir "$(echo /tmp/wheel/cdclake-*.whl)[local]" \
    && rm -rf /tmp/wheel

# PostgreSQL refuses to run as root.
RUN useradd --create-home lake && mkdir /lake && chown lake /lake
USER lake
WORKDIR /lake
ENV CDCLAKE_HOME=/lake/.cdclake CDCLAKE_CACHE=/lake/.cache
VOLUME /lake
ENTRYPOINT ["cdclake"]
