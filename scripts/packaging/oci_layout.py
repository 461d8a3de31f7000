#!/usr/bin/env python3
"""Makes the layout of an OCI image from layers, and an archive of it.

Usage: oci_layout.py OUTPUT VERSION ARCHITECTURE SECONDS LAYER...

OUTPUT becomes a directory, OUTPUT.tar the archive. ARCHITECTURE is that of Go and Debian (amd64, arm64), SECONDS the
time of everything inside, as seconds since 1970. A LAYER is an uncompressed tar file; the first is the lowest. The
same input makes the same bytes.
"""

import gzip
import hashlib
import json
import os
import shutil
import sys
import tarfile
from datetime import datetime, timezone

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"

CHUNK = 1 << 20


def encoded(value):
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


class Layout:
    def __init__(self, path):
        self.path = path
        self.blobs = os.path.join(path, "blobs", "sha256")
        os.makedirs(self.blobs)

    def write(self, name, value):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(encoded(value))

    def add(self, media_type, data):
        """Stores bytes as a blob; returns the blob's descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.blobs, digest), "wb") as file:
            file.write(data)
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data)}

    def add_layer(self, path):
        """Stores a compressed layer; returns its descriptor and the digest of its uncompressed bytes."""
        new = os.path.join(self.blobs, "new")
        uncompressed = hashlib.sha256()
        with open(path, "rb") as source, open(new, "wb") as target:
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=target, mtime=0) as stream:
                while chunk := source.read(CHUNK):
                    uncompressed.update(chunk)
                    stream.write(chunk)
        compressed = hashlib.sha256()
        with open(new, "rb") as source:
            while chunk := source.read(CHUNK):
                compressed.update(chunk)
        os.rename(new, os.path.join(self.blobs, compressed.hexdigest()))
        descriptor = {
            "mediaType": LAYER_TYPE,
            "digest": "sha256:" + compressed.hexdigest(),
            "size": os.path.getsize(os.path.join(self.blobs, compressed.hexdigest())),
        }
        return descriptor, "sha256:" + uncompressed.hexdigest()


def make_layout(path, version, architecture, seconds, layers):
    created = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = "localhost/httpfs:" + version
    layout = Layout(path)
    added = [layout.add_layer(layer) for layer in layers]
    labels = {
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.description": "Mounts a list of URLs as local files, fetched as they are read",
        "org.opencontainers.image.licenses": "MIT",
        "org.opencontainers.image.title": "httpfs",
        "org.opencontainers.image.version": version,
    }
    config = layout.add(CONFIG_TYPE, encoded({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/httpfs"],
            "Cmd": ["--help"],
            "Env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                # Below /var/cache/httpfs, like the caches of mount(8) and of the service.
                "XDG_CACHE_HOME=/var/cache",
            ],
            "Labels": labels,
            "StopSignal": "SIGTERM",
            "WorkingDir": "/data",
        },
        "rootfs": {"type": "layers", "diff_ids": [digest for _, digest in added]},
        "history": [
            {"created": created, "created_by": "scripts/package oci", "comment": comment}
            for comment in ("Debian's libraries", "httpfs")
        ],
    }))
    manifest = layout.add(MANIFEST_TYPE, encoded({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": config,
        "layers": [descriptor for descriptor, _ in added],
        "annotations": labels,
    }))
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    # The name under which podman and skopeo, and containerd, load the image.
    manifest["annotations"] = {
        "org.opencontainers.image.ref.name": name,
        "io.containerd.image.name": name,
    }
    layout.write("index.json", {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [manifest]})
    layout.write("oci-layout", {"imageLayoutVersion": "1.0.0"})

    # `docker load` of Docker without containerd's store reads this file only.
    def blob(descriptor):
        return "blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")

    layout.write("manifest.json", [
        {"Config": blob(config), "RepoTags": [name], "Layers": [blob(descriptor) for descriptor, _ in added]}
    ])


def make_archive(path, archive, seconds):
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = seconds
        entry.mode = 0o755 if entry.isdir() else 0o644
        return entry

    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as file:
        # Each directory's entries come in the order of their names.
        for name in sorted(os.listdir(path)):
            file.add(os.path.join(path, name), arcname=name, filter=plain)


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    output, version, architecture, seconds = sys.argv[1:5]
    new = output + ".new"
    shutil.rmtree(new, ignore_errors=True)
    make_layout(new, version, architecture, int(seconds), sys.argv[5:])
    make_archive(new, new + ".tar", int(seconds))
    shutil.rmtree(output, ignore_errors=True)
    os.rename(new, output)
    os.rename(new + ".tar", output + ".tar")


if __name__ == "__main__":
    main()
