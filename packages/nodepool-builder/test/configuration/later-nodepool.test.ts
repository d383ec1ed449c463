import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/configuration/diagnostic.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';

/** The messages about a file, as lines; `refused` precedes those of a refused file. */
async function messagesOf(t: TestContext, text: string): Promise<string[]> {
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  writeFileSync(file, text);
  try {
    const { warnings } = await loadConfiguration(file);
    return warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic));
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, String(error));
    return [
      'refused',
      ...error.diagnostics.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic)),
    ];
  }
}

/** An example of the documentation of later releases. */
const LATER = `images-dir: /i
zookeeper-servers:
  - host: localhost
labels:
  - name: noble
    min-ready: 1
providers:
  - name: devstack
    driver: openstack
    cloud: devstack
    diskimages:
      - name: noble
        config-drive: true
    cloud-images:
      - name: fedora
    pools:
      - name: main
        max-servers: 5
        labels:
          - {name: noble, diskimage: noble, min-ram: 512}
  - name: other
    driver: aws
    pools: []
diskimages:
  - name: noble
    metadata: {a: b}
    elements: [ubuntu-minimal, vm]
`;

describe('a file for a later nodepool', () => {
  it('is refused with one message, which says what to write instead', async (t) => {
    assert.deepEqual(await messagesOf(t, LATER), [
      'refused',
      'nodepool.yaml:9:5: providers[0].driver is a key of nodepool 0.4 and later, which uses ZooKeeper: the file is ' +
        'written for such a release; write "type: openstack" (or directory, or qemu) in place of "driver", and ' +
        '"images: [{name: IMAGE, diskimage: IMAGE}]" in place of "diskimages", and nothing in place of "pools"',
    ]);
  });

  it('is accepted with a warning where its providers have images too, as both releases can read it', async (t) => {
    const text = `images-dir: /i
providers:
  - name: p
    type: directory
    directory: /p
    images: []
    diskimages: [{name: noble}]
`;
    assert.deepEqual(await messagesOf(t, text), [
      'nodepool.yaml:7:5: warning: providers[0].diskimages is a key of nodepool 0.4 and later, which uses ZooKeeper: the ' +
        'file is written for such a release; write "images: [{name: IMAGE, diskimage: IMAGE}]" in place of "diskimages"',
    ]);
  });

  it('causes a warning if only its labels show it', async (t) => {
    assert.deepEqual(await messagesOf(t, 'images-dir: /i\nlabels:\n  - name: noble\n    min-ready: 2\n'), [
      'nodepool.yaml:3:5: warning: labels[0] has neither image nor providers, as in nodepool 0.4 and later, which uses ' +
        'ZooKeeper; it is ignored here; a nodepool that uses Gearman needs both',
    ]);
  });

  it('has other keys than a file for the nodepool that uses Gearman', async (t) => {
    const text = `images-dir: /i
zookeeper-servers: [{host: localhost}]
labels: [{name: a, image: b, min-ready: 2, providers: [{name: p}]}]
providers:
  - {name: p, type: directory, directory: /p, pool: ext, images: []}
`;
    assert.deepEqual(await messagesOf(t, text), []);
  });
});
