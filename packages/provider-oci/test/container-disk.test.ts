// Only in test:all: it repeats the contract for another layout, and needs skopeo.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { foreignTo, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { requestFor, writeDisk } from './disk.ts';
import { ociFixture } from './oci-fixture.ts';
import type { Manifest } from './registry-content.ts';

const run = promisify(execFile);

imageProviderContract('OciProvider with container-disk', async (t) => {
  const { open } = await ociFixture(t);
  const foreign = foreignTo(open({ layout: 'container-disk', name: 'other' }));
  return { provider: open({ layout: 'container-disk' }), foreign };
});

for (const compression of ['zstd', 'gzip'] as const) {
  test(`another client unpacks a container disk with ${compression}`, async (t) => {
    const fixture = await ociFixture(t);
    const { directory, registry, repository, authFile } = fixture;
    const path = join(directory, 'disk.qcow2');
    const bytes = await writeDisk(path);
    await fixture.open({ layout: 'container-disk', compression }).upload({
      ...(await requestFor(path)),
      metadata: { architecture: 'aarch64' },
    });
    const certificates = join(directory, 'certificates');
    await mkdir(certificates);
    await symlink(registry.caFile, join(certificates, 'ca.crt'));
    const copied = join(directory, 'copied');
    // skopeo verifies the digests of the layers, packed and unpacked.
    const options = ['--authfile', authFile, '--src-cert-dir', certificates, '--override-arch', 'arm64'];
    await run('skopeo', ['copy', ...options, `docker://${repository}:debian-latest`, `dir:${copied}`]);
    const { config, layers } = JSON.parse(await readFile(join(copied, 'manifest.json'), 'utf8')) as Manifest;
    const blob = (layer: Manifest['config']): string => join(copied, layer.digest.replace('sha256:', ''));
    const { architecture, os, rootfs } = JSON.parse(await readFile(blob(config), 'utf8'));
    assert.deepEqual({ architecture, os }, { architecture: 'arm64', os: 'linux' });
    const tar = join(directory, 'layer.tar');
    const unpacked = await run(compression, ['-dc', blob(layers[0])], {
      encoding: 'buffer',
      maxBuffer: 2 ** 26,
    });
    await writeFile(tar, unpacked.stdout);
    const diffId = createHash('sha256').update(unpacked.stdout).digest('hex');
    assert.deepEqual(rootfs, { type: 'layers', diff_ids: [`sha256:${diffId}`] });
    const { stdout: listed } = await run('tar', ['-tvf', tar, '--numeric-owner']);
    assert.match(
      listed,
      /^dr-xr-xr-x 107\/107 +0 .* disk\/\n-r--r----- 107\/107 +\d+ .* disk\/disk\.qcow2\n$/,
    );
    const disk = await run('tar', ['-xOf', tar, 'disk/disk.qcow2'], {
      encoding: 'buffer',
      maxBuffer: 2 ** 26,
    });
    assert.ok(disk.stdout.equals(bytes), 'the disk is the file');
  });
}
