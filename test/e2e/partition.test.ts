// Only in test:all: it cuts hosts off and waits until they are reconnected.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { openStateStore } from '@nodepool-builder/image-manager';
import { startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import {
  createManagedSite,
  endAfter,
  type ManagedSite,
  provider,
  spawnManager,
} from '../fixtures/managed-site.ts';
import { Relay } from '../fixtures/relay.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** A builder's host, whose disk-image-create waits for a gate, and builds an image that other hosts do not. */
interface Host {
  readonly site: ManagedSite;
  openGate(): Promise<void>;
}

async function createHost(t: TestContext, port: number, name: string, east?: string): Promise<Host> {
  const site = await createManagedSite(t, {}, port);
  const [command, gate] = [join(site.directory, 'disk-image-create'), join(site.directory, 'gate')];
  await writeFile(
    command,
    `#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o) output=$2 ;; esac; shift; done
echo waiting; until [ -e ${gate} ]; do sleep 0.02; done
echo "an image of ${name}" > "$output.raw"
`,
  );
  await chmod(command, 0o755);
  await site.configure({
    manager: { store: 'state/manager.sqlite', 'retry-delay': 1, 'max-retry-delay': 1 },
    diskimages: [{ name: 'docs', elements: ['vm'], 'dib-cmd': command }],
    providers: [provider('east', { 'image-type': 'raw', directory: east ?? join(site.directory, 'east') })],
  });
  return { site, openGate: () => writeFile(gate, '') };
}

it('a copy of an image that differs from the record is deleted after a network partition', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const link = await Relay.start(server.port);
  undoAfter(t, () => link.close());
  const near = await createHost(t, server.port, 'near');
  const far = await createHost(t, link.port, 'far', join(near.site.directory, 'east'));
  const manager = spawnManager(t, near.site.config);
  const farBuilder = endAfter(t, await startBuilder(far.site.config));
  await farBuilder.logged(/nodepool\.image\.build\.docs: waiting/);

  link.cut();
  const nearBuilder = endAfter(t, await startBuilder(near.site.config));
  await nearBuilder.logged(/nodepool\.image\.build\.docs: waiting/);
  await far.openGate();
  await waitUntil('the copy of the far builder', async () => (await far.site.built()).length === 1);
  await near.openGate();
  await manager.logged(/upload \S+ of \S+ to east is ready/);
  const [file] = await near.site.built();
  assert.ok(file);
  assert.deepEqual(await far.site.built(), [file], 'two builders have files of one name');

  link.mend();
  await manager.logged(/several builders offer image docs-0000000001-/);
  await waitUntil('the deletion of the far copy', async () => (await far.site.built()).length === 0);
  await farBuilder.logged(
    /image docs-\S+ differs from the record, because another builder built it too; deleting this copy/,
  );
  assert.deepEqual(await near.site.built(), [file]);
  const bytes = await readFile(join(near.site.images, file));
  assert.equal(String(bytes), 'an image of near\n');

  const store = await openStateStore(near.site.store);
  undoAfter(t, () => store.close());
  const [build] = (await store.read()).builds.values();
  assert.equal(build?.checksum, `raw:${createHash('sha256').update(bytes).digest('hex')}`);
  const [uploaded] = await near.site.uploaded('east');
  assert.ok(uploaded);
  assert.equal(await readFile(join(near.site.directory, 'east', uploaded), 'utf8'), 'an image of near\n');
});
