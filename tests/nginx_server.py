"""nginx with the configuration of contrib/, changed only where a test must: ports, TLS, turns."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from tests.meta.tree import ROOT
from tests.redis_server import free_port

START_SECONDS = 20.0
MAIN = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/parsyn.conf;
}}
"""


class Nginx:
    """Listens on 127.0.0.1, in front of hub processes on `ports`, each in turn."""

    def __init__(self, ports: list[int]) -> None:
        binary = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
        if binary is None:
            raise FileNotFoundError("nginx is not installed: apt-get install nginx")
        self._binary = binary
        self._folder = Path(tempfile.mkdtemp(prefix="parsyn-nginx-", dir="/tmp"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (self._folder / "nginx.conf").write_text(MAIN.format(folder=self._folder))
        (self._folder / "parsyn.conf").write_text(self._site(ports))

    def _site(self, ports: list[int]) -> str:
        text = (ROOT / "contrib" / "proxy" / "nginx.conf").read_text()
        changes = [
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port};"),
            ("ip_hash;", ""),
            *((f"127.0.0.1:800{n}", f"127.0.0.1:{port}") for n, port in enumerate(ports, 1)),
        ]
        for old, new in changes:
            assert old in text, f"contrib/proxy/nginx.conf has no {old}"
            text = text.replace(old, new)
        return re.sub(r"^\s*ssl_certificate.*$", "", text, flags=re.MULTILINE)

    def start(self) -> None:
        """Start and wait until it answers, whatever the hub says."""
        self._process = subprocess.Popen(
            [self._binary, "-p", str(self._folder), "-c", str(self._folder / "nginx.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                httpx.get(f"{self.url}/metrics", trust_env=False)
                return
            except httpx.HTTPError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError((self._folder / "error.log").read_text()) from None
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)
