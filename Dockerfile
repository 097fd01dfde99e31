# flagsvc: the proxy, the flag server and the commands, without a shell or a package manager. See docs/how-to/container.md.
# The digest is that of the image index for all platforms, as the official images publish it (docker-library/repo-info). To renew it:
# `docker buildx imagetools inspect python:3.13-slim`. The workflow `image` does so every week.
# tests/integration/test_container.py runs the RUN steps and the entry point, without a container engine.

FROM python:3.13-slim@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
RUN mkdir -m 0700 /state
WORKDIR /source
COPY requirements ./requirements
RUN python -m venv /tools
RUN /tools/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt
# Every extra is in runtime.txt: one image runs the proxy, replicas of it, the flag server and the commands.
RUN python -m venv --without-pip /opt/flagsvc
RUN /tools/bin/python -m pip --python /opt/flagsvc/bin/python install --no-cache-dir --no-compile --require-hashes -r requirements/runtime.txt
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE CHANGELOG.md SECURITY.md ./
COPY release ./release
COPY src ./src
# The source distribution first, and the wheel from it.
RUN /tools/bin/python -m build --no-isolation --outdir /wheels
RUN /tools/bin/python -m pip --python /opt/flagsvc/bin/python install --no-cache-dir --no-compile --no-deps --no-index --find-links /wheels flagsvc
# Python, the environment and the libraries that they load.
RUN /opt/flagsvc/bin/python release/rootfs.py /rootfs /opt/flagsvc

FROM scratch
LABEL org.opencontainers.image.title="flagsvc" \
      org.opencontainers.image.description="Feature-flag evaluation proxy" \
      org.opencontainers.image.source="https://github.com/flagsvc/flagsvc" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /rootfs /
COPY --chown=65532:65532 --from=build /state /state
ENV PATH=/opt/flagsvc/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    FLAGSVC_STORAGE=file:///state
USER 65532:65532
WORKDIR /
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["flagsvc", "health", "--any"]
ENTRYPOINT ["flagsvc"]
CMD ["proxy"]
