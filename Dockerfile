# A server of saved networks. Build the wheel first:
#   python -m build --wheel && docker build -t tigranet-serve .
#   docker run --read-only --tmpfs /tmp -v "$PWD/model:/model:ro" -p 127.0.0.1:8000:8000 tigranet-serve
FROM python:3.11-slim

COPY constraints.txt dist/tigranet-*.whl /build/
RUN python -m venv /opt/tigranet \
 && wheel="$(ls /build/tigranet-*.whl)" \
 && /opt/tigranet/bin/pip install --no-cache-dir --constraint /build/constraints.txt \
    --extra-index-url https://download.pytorch.org/whl/cpu "$wheel[serve]" \
 && rm -r /build

# Nothing is downloaded at run time, and nothing is written except the compiled kernels in /tmp.
ENV HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 TIGRANET_CACHE=/tmp/tigranet
USER 10001:10001
WORKDIR /
EXPOSE 8000
HEALTHCHECK --interval=10s --start-period=120s CMD ["/opt/tigranet/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/v2/health/ready')"]
ENTRYPOINT ["/opt/tigranet/bin/tigranet", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/model"]
