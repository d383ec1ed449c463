// Only in test:all: it cuts hosts off and waits until they are reconnected.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BuilderHost, type ManyHosts, startManyHosts } from '../fixtures/many-hosts.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** One disk image that both builders can build. */
const DEBIAN = { a: ['debian'], b: ['debian'], c: ['debian'] };

/** The example as documented: only builder B builds one of the three. */
const ALL = {
  a: ['debian', 'debian-12', 'debian-efi'],
  b: ['debian', 'debian-12', 'debian-efi'],
  c: ['debian', 'debian-12'],
};

/** Returns the number of builds that wait at the gate of a host. */
function atTheGate({ builder }: BuilderHost): number {
  return builder.log.filter((line) => /nodepool\.image\.build\.\S+: waiting/.test(line)).length;
}

/** Returns the number of uploads whose hook runs. */
function hooks({ builder }: BuilderHost): number {
  return builder.log.filter((line) => /running the hook/.test(line)).length;
}

/** Returns the builder that runs the only build, and the other one. */
async function whoBuilds({ b, c }: ManyHosts): Promise<[builds: BuilderHost, idle: BuilderHost]> {
  const first = await waitUntil('the build', () => [b, c].find((host) => atTheGate(host) > 0));
  return first === b ? [b, c] : [c, b];
}

async function openGates({ b, c }: ManyHosts): Promise<void> {
  await Promise.all([b, c].map(({ dib }) => dib.openGate()));
}

/** Lists the images in the provider, such as `debian-debian-0000000001-k7f3q2xa`, without manifests and links. */
async function uploaded(site: ManyHosts): Promise<string[]> {
  return (await site.pool())
    .filter((name) => name.endsWith('.qcow2') && !name.includes('-latest.'))
    .map((name) => name.slice(0, -'.qcow2'.length));
}

/** Lists the ids of the builds that the manager has recorded as ready. */
function ready({ manager }: ManyHosts): string[] {
  return manager.log.flatMap((line) => /build (\S+) is ready/.exec(line)?.slice(1) ?? []);
}

async function jobs(site: ManyHosts): Promise<number> {
  return (await site.functions()).reduce((sum, { jobs: here }) => sum + here, 0);
}

async function workersOf(site: ManyHosts, name: string): Promise<number> {
  return (await site.functions()).find((entry) => entry.name === name)?.workers ?? 0;
}

/** Returns the disk image of an id such as `debian-0000000001-k7f3q2xa`. */
function diskimageOf(imageId: string): string {
  return imageId.replace(/-\d+-\w+$/, '');
}

/** Returns the contents of a provider with exactly these images. */
function poolOf(imageIds: readonly string[]): string[] {
  const files = imageIds.flatMap((id) => {
    const name = diskimageOf(id);
    return [`${name}-${id}.qcow2`, `${name}-${id}.qcow2.json`, `${name}-latest.qcow2`];
  });
  return files.toSorted();
}

/** Waits until each disk image has exactly one image, in one builder and in the provider. Returns the ids. */
async function settled(site: ManyHosts, diskimages: readonly string[]): Promise<string[]> {
  const wanted = diskimages.toSorted().join();
  return await waitUntil('exactly the wanted images everywhere', async () => {
    const images = [...(await site.b.images()), ...(await site.c.images())].toSorted();
    if (images.map(diskimageOf).toSorted().join() !== wanted) return undefined;
    if ((await site.pool()).join() !== poolOf(images).join()) return undefined;
    return (await jobs(site)) === 0 && images;
  });
}

describe('many hosts', { concurrency: true }, () => {
  it('builds spread over the builders on many hosts, and uploads go to the builder that has the file', async (t) => {
    const site = await startManyHosts(t, ALL);
    const { b, c } = site;
    await waitUntil('a build at each builder', () => [b, c].every((host) => atTheGate(host) === 1));
    await openGates(site);
    await settled(site, ALL.a);

    for (const [host, other] of [
      [b, c],
      [c, b],
    ] as const) {
      const images = await host.images();
      assert.ok(images.length > 0);
      for (const id of images) {
        const isUploaded = (line: string) => line.includes('upload') && line.includes(id);
        assert.ok(host.builder.log.some(isUploaded), `${id} is uploaded where it is`);
        assert.ok(!other.builder.log.some(isUploaded), `${id} is not uploaded where it is not`);
      }
    }
    assert.ok((await b.images()).some((id) => id.startsWith('debian-efi-')));
  });

  it('another builder builds when one is killed during a build, and the killed one leaves nothing', async (t) => {
    const site = await startManyHosts(t, DEBIAN);
    const [victim, other] = await whoBuilds(site);
    await victim.builder.end('SIGKILL');
    await waitUntil('the build at the other builder', () => atTheGate(other) === 1);
    await openGates(site);
    const image = await settled(site, ['debian']);

    await victim.start();
    assert.deepEqual([await victim.images(), await other.images()], [[], image]);
    assert.deepEqual(ready(site), image, 'one build, as far as the manager knows');
  });

  it('another builder builds when one is cut off during a build, and the first one’s image is finally deleted', async (t) => {
    const site = await startManyHosts(t, DEBIAN);
    const [victim, other] = await whoBuilds(site);
    await victim.network.unplug();
    await waitUntil('the build at the other builder', () => atTheGate(other) === 1);
    await other.dib.openGate();
    const image = await settled(site, ['debian']);

    await victim.dib.openGate();
    await waitUntil('the image whose job has no client', async () => (await victim.images()).length > 0);
    assert.deepEqual([await victim.images(), ready(site)], [image, image]);
    await victim.network.plug();
    await waitUntil(
      'the builder that was cut off',
      async () => (await workersOf(site, `image-delete:${image.join()}`)) === 2,
    );
    await site.rebuild('debian');
    await waitUntil('the next build', () => ready(site).length === 2);
    assert.deepEqual(await settled(site, ['debian']), ready(site).slice(1));
  });

  it('an image is built again when a builder is cut off during an upload of its only copy', async (t) => {
    const site = await startManyHosts(t, DEBIAN);
    for (const host of [site.b, site.c]) await host.holdUploads();
    await openGates(site);
    const victim = await waitUntil('an upload', () => [site.b, site.c].find((host) => hooks(host) > 0));
    const other = victim === site.b ? site.c : site.b;
    await other.releaseUploads();
    await victim.network.unplug();
    const lost = await victim.images();
    await waitUntil('the next build', () => ready(site).length === 2);
    const next = ready(site).slice(1);
    await waitUntil('the next upload', async () => (await uploaded(site)).join() === `debian-${next.join()}`);
    assert.deepEqual([await victim.images(), await other.images()], [lost, next]);

    await victim.network.plug();
    await victim.releaseUploads();
    assert.deepEqual(await settled(site, ['debian']), next);
    assert.equal(hooks(victim), 1, 'the lost image is not uploaded any more');
  });

  it('everything continues when the job server is cut off from all builders and returns', async (t) => {
    const site = await startManyHosts(t, ALL);
    const { a, b, c } = site;
    await waitUntil('a build at each builder', () => [b, c].every((host) => atTheGate(host) === 1));
    await a.unplug();
    await waitUntil('the loss of both builders', async () =>
      (await site.functions()).every(({ workers }) => workers === 0),
    );
    assert.equal(await jobs(site), 3, 'all jobs wait');
    await b.dib.openGate();
    await waitUntil('an image whose job has no client', async () => (await b.images()).length === 1);

    await a.plug();
    await c.dib.openGate();
    await waitUntil('the builds', () => ready(site).length === 3);
    await waitUntil('the uploads', async () => (await uploaded(site)).length === 3);
    for (const name of ALL.a) await site.rebuild(name);
    await waitUntil('the next builds', () => ready(site).length === 6);
    assert.deepEqual(await settled(site, ALL.a), ready(site).slice(3).toSorted());
  });
});
