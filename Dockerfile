# A public server (see dashboard/web/README.md), also as a Space of the Hugging Face hub.
FROM python:3.11-slim

RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 reader
USER reader
WORKDIR /home/reader/attention-sieve
COPY --chown=reader . .
ENV OMP_WAIT_POLICY=PASSIVE
RUN make prepared
# Whoever comes, comes through a proxy, which says from where.
ENV HOST=localhost FORWARDED_ALLOW_IPS=*
EXPOSE 7860
CMD make class ADDRESS=0.0.0.0 PORT=7860 HOST="${SPACE_HOST:-$HOST}"
