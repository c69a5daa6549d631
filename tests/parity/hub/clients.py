# SPDX-License-Identifier: Apache-2.0
"""What the services' own Python clients ask a server for, recorded for cli.download_assets: by hand, where huggingface_hub and
modelscope_hub are installed.

    python tests/parity/hub/clients.py build/dev > tests/parity/hub/requests.txt

Starts hub_server with a small repository, lists it and asks for files with both clients, checks that they understand what the
server says (paths, sizes, checksums), and prints the addresses that they asked for.
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

files = {"config.json": b"{}\n", "original/tokenizer.model": b"words" * 100, "a b+c%.bin": b"x" * 10}


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as root:
        model = pathlib.Path(root, "org", "model")
        for name, data in files.items():
            path = model / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        server = subprocess.Popen([f"{build}/bin/hub_server", root], stdin=subprocess.PIPE)
        while not pathlib.Path(root, "port").exists():
            time.sleep(0.01)
        endpoint = "http://127.0.0.1:" + pathlib.Path(root, "port").read_text()
        os.environ.update(HF_ENDPOINT=endpoint, MODELSCOPE_ENDPOINT=endpoint, HF_HOME=root + "/hf", MODELSCOPE_HOME=root + "/ms",
                          MODELSCOPE_CACHE=root + "/ms-cache", HF_HUB_DISABLE_TELEMETRY="1")
        os.environ.pop("HF_TOKEN", None)
        huggingface(endpoint)
        modelscope(endpoint)
        server.stdin.close()
        server.wait()
        for line in pathlib.Path(root, "log").read_text().splitlines():
            status, target = line.split(" ")[:2]
            assert status == "200", line
            print(target)


def fetch(url, data):
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == data, url


def huggingface(endpoint):
    import huggingface_hub
    from huggingface_hub import HfApi, hf_hub_url

    print("# huggingface_hub", huggingface_hub.__version__)
    tree = {f.path: f for f in HfApi(endpoint=endpoint, token=False).list_repo_tree("org/model", recursive=True, revision="main") if hasattr(f, "size")}
    assert set(tree) == set(files), tree
    for name, data in files.items():
        assert tree[name].size == len(data)
        if tree[name].lfs is not None:
            assert tree[name].lfs.sha256 == hashlib.sha256(data).hexdigest()
        else:
            assert tree[name].blob_id == hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        fetch(hf_hub_url("org/model", name, endpoint=endpoint), data)


def modelscope(endpoint):
    import modelscope_hub
    from modelscope_hub._legacy_api import LegacyClient

    print("# modelscope_hub", modelscope_hub.__version__)
    client = LegacyClient(None, endpoint)
    entries = {e["Path"]: e for e in client.list_repo_files("org/model", "model", revision="master") if e["Type"] != "tree"}
    assert set(entries) == set(files), entries
    for name, data in files.items():
        assert entries[name]["Size"] == len(data) and entries[name]["Sha256"] == hashlib.sha256(data).hexdigest()
        fetch(client.get_download_url("org/model", "model", name), data)


if __name__ == "__main__":
    main()
